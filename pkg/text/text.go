// Package text makes foreign text, which any program may choose, safe to store and print: bounded, valid UTF-8,
// without control characters. It also formats figures.
package text

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bound is the default limit, in bytes.
const Bound = 256

// Clean escapes unprintable characters (\n, \x1b, \u202e), and cuts s to limit bytes with a final "…".
func Clean(s string, limit int) string {
	if len(s) <= limit && plain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		piece := string(r)
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], piece):
			piece = fmt.Sprintf(`\x%02x`, s[i])
		case r == '\n':
			piece = `\n`
		case r == '\t':
			piece = `\t`
		case r < 0x80 && !unicode.IsPrint(r):
			piece = fmt.Sprintf(`\x%02x`, r)
		case !unicode.IsPrint(r):
			piece = fmt.Sprintf(`\u%04x`, r)
		}
		if b.Len()+len(piece) > limit {
			cut := b.String()
			for len(cut) > 0 && len(cut)+len("…") > limit {
				_, size := utf8.DecodeLastRuneInString(cut)
				cut = cut[:len(cut)-size]
			}
			if limit < len("…") {
				return cut
			}
			return cut + "…"
		}
		b.WriteString(piece)
	}
	return b.String()
}

// Steps writes a line per step. A quoted path may have a semicolon.
func Steps(indent, remedy string) string {
	var b strings.Builder
	quoted, from := false, 0
	for i := range len(remedy) {
		switch {
		case remedy[i] == '\'' && (quoted || i == 0 || strings.IndexByte(" (='", remedy[i-1]) >= 0):
			quoted = !quoted
		case !quoted && strings.HasPrefix(remedy[i:], "; "):
			b.WriteString(indent + "→ " + remedy[from:i] + "\n")
			from = i + len("; ")
		}
	}
	return b.String() + indent + "→ " + remedy[from:] + "\n"
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			// These need a check of whole runes.
			return c >= utf8.RuneSelf && utf8.ValidString(s[i:]) && !strings.ContainsFunc(s[i:], unprintable)
		}
	}
	return true
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Shell quotes a foreign word of a shell command, and makes no option of it.
func Shell(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-:,+@%=", r)
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Round keeps three or four digits.
func Round(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	case d >= 10*time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}

// Short writes 10m, not 10m0s.
func Short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Count returns "1 call" or "2 calls".
func Count(n int, one string, others ...string) string {
	switch {
	case n == 1:
		return "1 " + one
	case len(others) > 0:
		return fmt.Sprintf("%d %s", n, others[0])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// OneOf returns "another" or "one of 2 others".
func OneOf(n int) string {
	if n == 1 {
		return "another"
	}
	return fmt.Sprintf("one of %d others", n)
}

// Duration parses a duration such as "90m", "1d12h" or "2w". A day has 24 hours.
func Duration(s string) (time.Duration, error) {
	var sum time.Duration
	rest := s
	for _, unit := range []struct {
		name  string
		hours int
	}{{"w", 7 * 24}, {"d", 24}} {
		before, after, found := strings.Cut(rest, unit.name)
		if n, err := strconv.Atoi(before); found && err == nil && n >= 0 && n < 10_000 {
			sum += time.Duration(n*unit.hours) * time.Hour
			rest = after
		}
	}
	if rest == "" && s != "" {
		return sum, nil
	}
	d, err := time.ParseDuration(rest)
	if err != nil || sum > 0 && d < 0 {
		return 0, errors.New("want a number with a unit (ms, s, m, h, d or w), such as 90m")
	}
	return sum + d, nil
}

// ExitCode is hexadecimal from 0x40000000 on: Windows' bit fields.
func ExitCode(code uint32) string {
	if code >= 0x40000000 {
		return fmt.Sprintf("0x%08x", code)
	}
	return strconv.FormatUint(uint64(code), 10)
}

// NamesMax bounds distinct names per kind, which backends store forever; a busy node runs a few dozen.
const NamesMax = 200

// Names passes up to NamesMax distinct names. Zero is ready. Not for concurrent use.
type Names struct{ seen map[string]bool }

// Limit returns name, or instead if that is over the limit, empty, or needs escaping.
func (n *Names) Limit(name, instead string) string {
	if n.seen[name] {
		return name
	}
	if name == "" || strconv.Quote(name) != `"`+name+`"` || len(n.seen) >= NamesMax {
		return instead
	}
	if n.seen == nil {
		n.seen = map[string]bool{}
	}
	n.seen[name] = true
	return name
}
