package probe

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/text"
)

// Arguments says which arguments of a command leave the probe.
type Arguments string

// Arguments may hold secrets (keys, tokens, whole rules with comments), so what is
// not known to be harmless is dropped.
const (
	// ArgumentsNone drops every argument.
	ArgumentsNone Arguments = "none"
	// ArgumentsKnown keeps what the allow-list of the tool lets through.
	ArgumentsKnown Arguments = "known"
	// ArgumentsAll keeps everything, bounded: for who may see secrets.
	ArgumentsAll Arguments = "all"
)

// argumentsMax is how many arguments of one command are kept.
const argumentsMax = 64

// hidden stands where arguments were dropped.
const hidden = "…"

// shape is the form that the value behind an option or keyword must have to be
// kept. What does not look like it is dropped: an allow-list of names alone would
// let a secret through wherever a user confuses the order.
type shape = *regexp.Regexp

// tool is what may be kept of one program's arguments.
type tool struct {
	// words are options and keywords, each with the shapes of the values behind it. An
	// option's value may be joined to it by "=".
	words map[string][]shape
	// bare are the shapes of what may stand anywhere. Addresses always may.
	bare []shape
	// fold: upper and lower case are the same; words are in lower case.
	fold bool
	// part returns what may be kept of an argument that is none of these; nil if nothing.
	part func(string) []string
}

// sanitise returns what may be shown of the arguments of the program called, and
// how many were held back. Runs of dropped arguments become one "…".
func sanitise(called string, args []string, mode Arguments) (kept []string, dropped int) {
	known, is := tools[called]
	if mode == ArgumentsNone || mode == ArgumentsKnown && !is {
		return nil, len(args)
	}
	s := sieve{tool: known}
	for i, arg := range args {
		switch {
		case len(s.kept) >= argumentsMax:
			return s.kept, s.dropped + len(args) - i
		case mode == ArgumentsAll:
			s.keep(text.Clean(arg, text.Bound))
		default:
			s.take(arg)
		}
	}
	return s.kept, s.dropped
}

// sieve lets through what is known of the arguments that it takes, one after another.
type sieve struct {
	tool
	next    []shape // of the values that are to come
	kept    []string
	dropped int
}

func (s *sieve) take(arg string) {
	var value shape
	if len(s.next) > 0 {
		value = s.next[0]
	}
	if value == rest {
		s.drop()
		return
	}
	option, joined, has := strings.Cut(arg, "=")
	values, isOption := s.words[arg]
	if s.fold {
		values, isOption = s.words[strings.ToLower(arg)]
	}
	switch {
	case value == script:
		s.keepPart(arg)
	case value == secret:
		s.next = s.next[1:]
		s.drop()
	case isOption:
		s.next = values
		s.keep(arg)
	case value != nil && value.MatchString(arg):
		s.next = s.next[1:]
		s.keep(arg)
	case isAddress(arg), slices.ContainsFunc(s.bare, func(b shape) bool { return b.MatchString(arg) }):
		s.next = nil
		s.keep(arg)
	case has && strings.HasPrefix(arg, "-") && len(s.words[option]) == 1 && s.words[option][0].MatchString(joined):
		s.next = nil
		s.keep(arg)
	default:
		s.next = nil
		s.keepPart(arg)
	}
}

// keepPart keeps what may be kept of an argument.
func (s *sieve) keepPart(arg string) {
	if s.part != nil {
		part := s.part(arg)
		s.keep(part...)
		if len(part) == 1 && part[0] == arg {
			return
		}
	}
	s.drop()
}

func (s *sieve) keep(args ...string) { s.kept = append(s.kept, args...) }

func (s *sieve) drop() {
	s.dropped++
	if len(s.kept) == 0 || s.kept[len(s.kept)-1] != hidden {
		s.keep(hidden)
	}
}

func isAddress(s string) bool {
	if strings.Contains(s, "%") { // a zone may be any text
		return false
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}
