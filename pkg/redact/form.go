package redact

import (
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Harmless numbers: secrets made of digits are longer.
const (
	maxDigits      = 5  // of one number: a port, an MTU, an HTTP code
	maxDigitsAll   = 8  // of all numbers in a word: "v1.29.12", "node-10-12"
	maxDigitsBytes = 12 // of all, if none exceeds a byte: "ip-192-168-10-12"
	maxSuffix      = 4  // of a number after letters: "eth0", "vlan4094"
	maxLone        = 2  // single letters: "i/o"; a letter with a number ("v1") counts twice
)

func (c *Call) form(s string, numbers bool) bool {
	if c.isShort(s) {
		return false
	}
	if in(s) {
		return true
	}
	if s != "" && run(s, isLetter) == len(s) {
		return c.names[s] || c.isID(s) || listed(s)
	}
	if numbers {
		if strings.HasPrefix(s, "GLIBC") && libc.MatchString(s) {
			return true
		}
		if _, is := timeOf(s); is || isAddress(s) && !c.spells(s) {
			return true
		}
	}
	var n numerals
	return c.joined(s, numbers, &n, "/:", "_", "-.") && n.lone <= maxLone &&
		(n.all <= maxDigitsAll || n.longest <= 3 && n.all <= maxDigitsBytes)
}

func (c *Call) isShort(s string) bool {
	return len(s) >= shortest && len(s) < window && c.short[lower(s)]
}

// libc matches versions of glibc's symbols and libstdc++'s.
var libc = regexp.MustCompile(`^GLIBC(XX)?_[0-9]{1,2}(\.[0-9]{1,3}){1,2}$`)

type numerals struct{ all, longest, lone int }

// joined reports whether all pieces of s may stay. The first separators join names that may contain later ones.
func (c *Call) joined(s string, numbers bool, n *numerals, separators ...string) bool {
	if c.names[s] || c.isID(s) {
		return true
	}
	if len(separators) == 0 {
		digits := countDigits(s)
		n.all, n.longest = n.all+digits, max(n.longest, digits)
		if len(s) == digits+1 && !in(s) { // the meaning of "c2:b0:57" is unknown
			n.lone += min(len(s), 2)
		}
		return c.piece(s, numbers)
	}
	for {
		i := strings.IndexAny(s, separators[0])
		if i < 0 {
			return c.joined(s, numbers, n, separators[1:]...)
		}
		if !c.joined(s[:i], numbers, n, separators[1:]...) {
			return false
		}
		s = s[i+1:]
	}
}

// piece reports whether s is harmless: empty, listed, a number, a word with a number, or a number with a unit.
func (c *Call) piece(s string, numbers bool) bool {
	switch {
	case s == "":
		return true
	case c.isShort(s):
		return false
	case listed(s):
		return true
	case !numbers:
		return false
	}
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		return len(hex) <= 4 && strings.Trim(lower(hex), "0123456789abcdef") == ""
	}
	if isLetter(s[0]) {
		return run(s, isLetter) < len(s) && numbered(s)
	}
	digits := run(s, isDigit)
	return digits <= maxDigits && (digits == len(s) || isUnit(s[digits:]))
}

// numbered reports whether s is a word with a short number: "eth0", "v1beta1", "hostIPv4".
func numbered(s string) bool {
	numbers := 0
	for s != "" {
		word := s[:run(s, isLetter)]
		s = s[len(word):]
		number := s[:run(s, isDigit)]
		s = s[len(number):]
		if numbers++; numbers > 2 || len(number) > maxSuffix || numbers > 1 && len(word) < 2 || !listed(word) {
			return false
		}
	}
	return true
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (c *Call) isID(s string) bool {
	return len(s) >= minID && slices.ContainsFunc(c.ids, func(id string) bool { return strings.HasPrefix(id, s) })
}

const (
	idLength = 64
	minID    = 10
)

func isUnit(s string) bool {
	switch s {
	case "B", "KB", "kB", "MB", "GB", "Ki", "Mi", "Gi", "Ti", "KiB", "MiB", "GiB", "k", "K", "M", "G", "bit", "kbit",
		"mbit", "gbit", "m", "s", "ms", "us", "ns", "h", "%", "x", "st", "nd", "rd", "th":
		return true
	}
	return false
}

// isAddress reports whether s is an IP address with optional prefix or port, a link address, a PCI address, or a range
// of addresses.
func isAddress(s string) bool {
	// Most words are none. A zone can be any text.
	if !strings.ContainsAny(s, ".:") || run(s, inAddress) < len(s) {
		return false
	}
	from, to, isRange := strings.Cut(s, "-")
	switch {
	case isHex(s, "##:##:##:##:##:##") || isHex(s, "####:##:##.#"):
		return true
	case isRange:
		return !strings.Contains(to, "-") && isAddress(from) && isAddress(to)
	case !strings.Contains(s, ":") && strings.Count(s, ".") != 3:
		return false
	case strings.Contains(s, "/"):
		_, err := netip.ParsePrefix(s)
		return err == nil
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	_, err := netip.ParseAddrPort(s)
	return err == nil
}

func inAddress(ch byte) bool {
	return isDigit(ch) || ch|0x20 >= 'a' && ch|0x20 <= 'f' || strings.IndexByte(".:/-[]", ch) >= 0
}

// isHex reports whether s matches a pattern, in which # is a hexadecimal digit.
func isHex(s, pattern string) bool {
	if len(s) != len(pattern) {
		return false
	}
	for i := range len(s) {
		is := s[i] == pattern[i]
		if pattern[i] == '#' {
			is = strings.IndexByte("0123456789abcdefABCDEF", s[i]) >= 0
		}
		if !is {
			return false
		}
	}
	return true
}

// spells reports whether an IPv6 address encodes a secret: sixteen bytes have room for text.
func (c *Call) spells(address string) bool {
	address, _, _ = strings.Cut(address, "/")
	a, err := netip.ParseAddr(address)
	if with, is := netip.ParseAddrPort(address); is == nil {
		a, err = with.Addr(), nil
	}
	if err != nil || !a.Is6() {
		return false
	}
	b := a.As16()
	return c.Repeats(string(b[:]))
}

func timeOf(s string) (time.Time, bool) {
	if len(s) < 10 || len(s) > len(time.RFC3339) || !isDigit(s[0]) {
		return time.Time{}, false
	}
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, t.Year() > 1999 && t.Year() < 2100
		}
	}
	return time.Time{}, false
}

// rounded rounds a duration or fraction to the thousandth, unless so many digits may mean something else.
func rounded(s string) (string, bool) {
	if f, err := strconv.ParseFloat(s, 64); err == nil && strings.Trim(s, "0123456789.") == "" && f < 10_000 {
		return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64), true
	}
	if len(s) < 3 || !isDigit(s[0]) || isLetter(s[1]) && isDigit(s[len(s)-1]) {
		return "", false
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > 1000*time.Hour {
		return "", false
	}
	if d > time.Millisecond {
		d = d.Round(time.Millisecond)
	} else {
		d = d.Round(time.Microsecond)
	}
	return d.String(), true
}

// run counts leading bytes, cheaper than strings.TrimLeft.
func run(s string, such func(byte) bool) (n int) {
	for n < len(s) && such(s[n]) {
		n++
	}
	return n
}

func countDigits(s string) (n int) {
	for i := range len(s) {
		if isDigit(s[i]) {
			n++
		}
	}
	return n
}

func isDigit(ch byte) bool  { return ch >= '0' && ch <= '9' }
func isUpper(ch byte) bool  { return ch >= 'A' && ch <= 'Z' }
func isLetter(ch byte) bool { return ch|0x20 >= 'a' && ch|0x20 <= 'z' }
