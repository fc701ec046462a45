package probe

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/redact"
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

// sanitise returns what may be shown of the arguments of the program called, which works for
// a call that so much is known of; and how many were held back. Runs of dropped arguments
// become one "…".
func sanitise(call *redact.Call, called string, args []string, mode Arguments) (kept []string, dropped int) {
	known, is := tools[called]
	if mode == ArgumentsNone || mode == ArgumentsKnown && !is {
		return nil, len(args)
	}
	s := sieve{tool: known, call: call}
	for i, arg := range args {
		switch {
		case len(s.kept) >= argumentsMax:
			s.dropped += len(args) - i
			return s.apart(mode)
		case mode == ArgumentsAll:
			s.keep(text.Clean(arg, text.Bound))
		default:
			s.take(arg)
		}
	}
	return s.apart(mode)
}

// apart drops what repeats, one word after another, what the call must not.
func (s *sieve) apart(mode Arguments) (kept []string, dropped int) {
	if mode == ArgumentsAll {
		return s.kept, s.dropped
	}
	all, repeats := s.kept, s.call.Apart(s.kept)
	s.kept = nil
	for i, arg := range all {
		if repeats[i] {
			s.drop()
		} else if arg != hidden || len(s.kept) == 0 || s.kept[len(s.kept)-1] != hidden {
			s.keep(arg)
		}
	}
	return s.kept, s.dropped
}

// sieve lets through what is known of the arguments that it takes, one after another.
type sieve struct {
	tool
	call    *redact.Call
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
	case value != nil && s.passes(value, arg):
		s.next = s.next[1:]
		s.keep(arg)
	case isAddress(arg) && s.call.Harmless(arg), slices.ContainsFunc(s.bare, func(b shape) bool { return s.passes(b, arg) }):
		s.next = nil
		s.keep(arg)
	case has && strings.HasPrefix(arg, "-") && len(s.words[option]) == 1 && s.passes(s.words[option][0], joined):
		s.next = nil
		s.keep(arg)
	default:
		s.next = nil
		s.keepPart(arg)
	}
}

// passes tells whether a value has the shape that it should have, and is nothing that the call
// must not repeat. What has the shape of a name must be a harmless one.
func (s *sieve) passes(value shape, arg string) bool {
	switch {
	case !value.MatchString(arg):
		return false
	case value == word:
		return s.call.Argument(arg)
	case value == columns:
		return !slices.ContainsFunc(strings.Split(arg, ","), func(name string) bool { return !s.call.Argument(name) })
	case value == sysctl:
		key, number, _ := strings.Cut(arg, "=")
		return s.call.Argument(key) && !s.call.Repeats(number)
	}
	return !s.call.Repeats(arg)
}

// keepPart keeps what may be kept of an argument.
func (s *sieve) keepPart(arg string) {
	if s.part != nil {
		part := slices.DeleteFunc(s.part(arg), func(p string) bool { return !s.call.Harmless(strings.TrimSuffix(p, "=")) })
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
