// Package text makes foreign text safe to keep and to print: bounded, valid UTF-8, without
// control characters. Names of executables, arguments, labels and exit messages are chosen by
// whoever runs on the node; none of them may reach a terminal, a log or a backend as it came.
// Durations are rounded here, too, to what a person reads.
package text

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bound is the length, in bytes, that a piece of foreign text is cut to where nothing else is said of it.
const Bound = 256

// Clean returns s with everything that is not printable escaped (\n, \x1b,
// \u202e) and cut to at most limit bytes, the cut marked by "…".
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

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			// Of what is no printable ASCII, only whole runes can be looked at.
			return c >= utf8.RuneSelf && utf8.ValidString(s[i:]) && !strings.ContainsFunc(s[i:], unprintable)
		}
	}
	return true
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// Round rounds a duration to three or four digits.
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

// ExitCode is an exit code as people write it. From 0x40000000 on its bits tell what happened, so it is in
// hexadecimal there.
func ExitCode(code uint32) string {
	if code >= 0x40000000 {
		return fmt.Sprintf("0x%08x", code)
	}
	return strconv.FormatUint(uint64(code), 10)
}

// NamesMax is how many distinct names of one kind a node gives out: whoever runs on it
// chooses the names of executables, and backends keep every span name and every label
// value for good. A busy node runs some dozens.
const NamesMax = 200

// Names lets a bounded number of distinct names through, first come, first served. The zero value lets
// NamesMax through. It is not safe for concurrent use.
type Names struct{ seen map[string]bool }

// Limit returns name, or instead where name is one too many, or is empty, or holds what
// must be escaped to be printed.
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
