// Package arguments decides which arguments of a command may be shown. It owns the
// allow-lists of the tools that CNI plugins run. It is pure, and knows no platform.
package arguments

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// Mode says which arguments of a command are kept.
type Mode string

// Arguments may hold secrets (keys, tokens, whole rules with comments), so what is
// not known to be harmless is dropped.
const (
	// None drops every argument.
	None Mode = "none"
	// Known keeps what the allow-list of the tool lets through.
	Known Mode = "known"
	// All keeps everything, bounded: for who may see secrets.
	All Mode = "all"
)

// most is how many arguments of one command are kept.
const most = 64

// hidden stands where arguments were dropped.
const hidden = "…"

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

// IsTool reports whether the arguments of a program of that name are known.
func IsTool(name string) bool {
	_, is := tools[name]
	return is
}

// Sanitise returns the arguments of the program called that may be shown, and how many were
// held back; nothing that call must not repeat is among the former. Each row of arguments
// held back becomes one "…". Of more than 64 arguments the rest is held back, too.
func Sanitise(call *redact.Call, called string, args []string, mode Mode) (kept []string, dropped int) {
	known, is := tools[called]
	if mode == None || mode == Known && !is {
		return nil, len(args)
	}
	s := sieve{tool: known, call: call}
	for i, arg := range args {
		switch {
		case len(s.kept) >= most:
			s.dropped += len(args) - i
			return s.apart(mode)
		case mode == All:
			s.keep(text.Clean(arg, text.Bound))
		default:
			s.take(arg)
		}
	}
	return s.apart(mode)
}

// apart drops what repeats, one word after another, what the call must not.
func (s *sieve) apart(mode Mode) (kept []string, dropped int) {
	if mode == All {
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
	due := len(s.next) > 0
	var value shape
	if due {
		value = s.next[0]
	}
	if due && value == remainder {
		s.drop()
		return
	}
	option, joined, has := strings.Cut(arg, "=")
	values, isOption := s.words[arg]
	if s.fold {
		values, isOption = s.words[strings.ToLower(arg)]
	}
	switch {
	case due && value == script:
		s.keepPart(arg)
	case due && value == secret:
		s.next = s.next[1:]
		s.drop()
	case isOption:
		s.next = values
		s.keep(arg)
	case due && s.passes(value, arg):
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

// passes reports whether a value has the shape that it should have, and is nothing that the call
// must not repeat. What has the shape of a name must be a harmless one.
func (s *sieve) passes(value shape, arg string) bool {
	switch {
	case !value.matches(arg):
		return false
	case value == word:
		return s.call.Argument(arg)
	case value == columns:
		return !slices.ContainsFunc(strings.Split(arg, ","), func(name string) bool { return !s.call.Argument(name) })
	case value == sysctl:
		key, setting, _ := strings.Cut(arg, "=")
		return s.call.Argument(key) && !s.call.Repeats(setting)
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

// takes are options and keywords, divided by spaces, and the shapes of the values behind each.
func takes(list string, values ...shape) map[string][]shape {
	words := map[string][]shape{}
	for w := range strings.FieldsSeq(list) {
		words[w] = values
	}
	return words
}

// options puts them together.
func options(all ...map[string][]shape) map[string][]shape {
	words := map[string][]shape{}
	for _, m := range all {
		maps.Copy(words, m)
	}
	return words
}
