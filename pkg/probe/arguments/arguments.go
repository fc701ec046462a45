// Package arguments decides which arguments of a command may be shown, by allow-lists. It is pure.
package arguments

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/redact"
	"github.com/cniscope/cniscope/pkg/text"
)

// Mode says which arguments of a command are shown.
type Mode string

// The modes. Unknown arguments may hold secrets.
const (
	None Mode = "none"
	// arguments on the command's allow-list
	Known Mode = "known"
	// all arguments, up to a bound
	All Mode = "all"
)

const most = 64

const hidden = "…"

type tool struct {
	// options and keywords with their values' shapes
	words map[string][]shape
	// shapes of values that may stand anywhere, such as addresses
	bare []shape
	// words are in lower case and match any case
	fold bool
	// returns the permitted parts of any other argument
	part func(string) []string
}

// IsTool reports whether the program has an allow-list.
func IsTool(name string) bool {
	_, is := tools[name]
	return is
}

// Sanitise returns a program's permitted arguments, up to 64, with "…" for dropped ones. They repeat nothing that
// call forbids.
func Sanitise(call *redact.Call, called string, args []string, mode Mode) (kept []string, dropped int) {
	known, is := tools[called]
	if mode == None || mode == Known && !is {
		return nil, len(args)
	}
	s := sieve{tool: known, call: call}
	if len(args) > 0 {
		s.kept = make([]string, 0, min(len(args), most+1))
	}
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

// apart drops words that together repeat what call forbids.
func (s *sieve) apart(mode Mode) (kept []string, dropped int) {
	if mode == All {
		return s.kept, s.dropped
	}
	all, repeats := s.kept, s.call.Apart(s.kept)
	s.kept = all[:0]
	for i, arg := range all {
		if repeats[i] {
			s.drop()
		} else if arg != hidden || len(s.kept) == 0 || s.kept[len(s.kept)-1] != hidden {
			s.keep(arg)
		}
	}
	return s.kept, s.dropped
}

type sieve struct {
	tool
	call    *redact.Call
	next    []shape // of the expected values
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
	if !strings.ContainsAny(s, ".:") || strings.Contains(s, "%") { // a zone may be any text
		return false
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParsePrefix(s)
	return err == nil
}

func takes(list string, values ...shape) map[string][]shape {
	words := map[string][]shape{}
	for w := range strings.FieldsSeq(list) {
		words[w] = values
	}
	return words
}

func options(all ...map[string][]shape) map[string][]shape {
	words := map[string][]shape{}
	for _, m := range all {
		maps.Copy(words, m)
	}
	return words
}
