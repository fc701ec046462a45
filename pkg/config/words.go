package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cniscope/cniscope/pkg/text"
)

// words is text, checked by check, which returns nil for what is right.
func words(check func(string) *fault) kind[string] {
	return simple(func(v any) (string, *fault) {
		s, ok := v.(string)
		if !ok {
			return "", wrong("write it in quotes", "is %s, not text", typeName(v))
		}
		if f := printable(s, textLength); f != nil {
			return "", f
		}
		if check == nil {
			return s, nil
		}
		return s, check(s)
	}, quote)
}

// textLength bounds, in bytes, every text that an option holds. PATH_MAX of
// Linux, the longest that any of them has a use for.
const textLength = 4096

// printable finds what would not come through a terminal, a header or a backend
// as it was written.
func printable(s string, limit int) *fault {
	if len(s) > limit {
		return wrong(fmt.Sprintf("shorten it to %d bytes", limit), "has %d bytes", len(s))
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return wrong("take them out", "has characters that cannot be printed")
	}
	return nil
}

// place is the absolute path of a file or folder.
func place(mayBeEmpty bool) kind[string] {
	return words(func(s string) *fault {
		if s == "" && mayBeEmpty || filepath.IsAbs(s) {
			return nil
		}
		return wrong(`write it from the root, as "/run/…"`, "%s is not an absolute path", quoted(s))
	})
}

// oneOf is one word of a closed set.
func oneOf(set ...string) kind[string] {
	return words(func(s string) *fault {
		if slices.Contains(set, s) {
			return nil
		}
		return wrong("write one of "+list(set), "%s is not known", quoted(s))
	})
}

// someOf is any number of words of a closed set, in the set's order.
func someOf(set ...string) kind[[]string] {
	remedy := "write any of " + list(set) + " between [ and ]"
	parse := func(v any) ([]string, []*fault) {
		items, ok := v.([]any)
		if !ok {
			return nil, []*fault{wrong(remedy, "is %s, not a list", typeName(v))}
		}
		var chosen []string
		var faults []*fault
		for i, item := range items {
			s, ok := item.(string)
			var f *fault
			switch {
			case !ok:
				f = wrong(remedy, "is %s", typeName(item))
			case !slices.Contains(set, s):
				f = wrong(remedy, "%s is not known", quoted(s))
			default:
				chosen = append(chosen, s)
				continue
			}
			f.under = index(i)
			faults = append(faults, f)
		}
		var in []string
		for _, s := range set {
			if slices.Contains(chosen, s) {
				in = append(in, s)
			}
		}
		return in, faults
	}
	toml := func(chosen []string) string {
		return "[" + list(chosen) + "]"
	}
	return kind[[]string]{parse: parse, toml: toml}
}

// listOf is any number of items, in the order they are written.
func listOf(item kind[string], most int) kind[[]string] {
	remedy := fmt.Sprintf("write up to %d of them between [ and ]", most)
	parse := func(v any) (all []string, faults []*fault) {
		items, ok := v.([]any)
		switch {
		case !ok:
			return nil, []*fault{wrong(remedy, "is %s, not a list", typeName(v))}
		case len(items) > most:
			return nil, []*fault{wrong(remedy, "has %d items", len(items))}
		}
		for i, v := range items {
			s, wrong := item.parse(v)
			for _, f := range wrong {
				f.under = index(i)
			}
			all, faults = append(all, s), append(faults, wrong...)
		}
		return all, faults
	}
	return kind[[]string]{parse: parse, toml: func(all []string) string { return "[" + list(all) + "]" }}
}

func index(i int) string { return "[" + strconv.Itoa(i) + "]" }

// list writes words as TOML would, one after another.
func list(words []string) string {
	quotedWords := make([]string, len(words))
	for i, w := range words {
		quotedWords[i] = quote(w)
	}
	return strings.Join(quotedWords, ", ")
}

// quoted is what somebody wrote, as an error shows it.
func quoted(s string) string { return `"` + text.Clean(s, text.Bound) + `"` }

// quote writes s as a TOML basic string.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
