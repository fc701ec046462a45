// Package spelled writes secrets in all spellings that redaction knows, and finds them in texts. It does not use
// pkg/redact, which it tests.
package spelled

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Ways returns the spellings of a secret, by name.
func Ways() map[string]func(string) string { return ways }

var ways = map[string]func(string) string{
	"plain":           func(s string) string { return s },
	"upper":           strings.ToUpper,
	"lower":           strings.ToLower,
	"other case":      func(s string) string { return strings.Map(swapCase, s) },
	"quoted":          func(s string) string { return fmt.Sprintf("%q", s) },
	"quoted in ASCII": func(s string) string { return fmt.Sprintf("%+q", s) },
	"quoted twice":    func(s string) string { return fmt.Sprintf("%q", fmt.Sprintf("%q", s)) },
	"JSON":            func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"JSON in quotes":  func(s string) string { b, _ := json.Marshal(s); return fmt.Sprintf("%q", b) },
	"percent":         func(s string) string { return percent(s, false, "%02X") },
	"percent, lower":  func(s string) string { return percent(s, false, "%02x") },
	"percent, all":    func(s string) string { return percent(s, true, "%02X") },
	"hex":             func(s string) string { return fmt.Sprintf("%x", s) },
	"upper hex":       func(s string) string { return fmt.Sprintf("%X", s) },
	"hex, apart":      func(s string) string { return fmt.Sprintf("% x", s) },
	"bytes":           func(s string) string { return fmt.Sprintf("%d", []byte(s)) },
	"base64":          func(s string) string { return Base64(s, "+/", true) },
	"base64, raw":     func(s string) string { return Base64(s, "+/", false) },
	"base64, URL":     func(s string) string { return Base64(s, "-_", true) },
	"base64, pair":    func(s string) string { return Base64("admin:"+s, "+/", true) },
	"base64, pair 2":  func(s string) string { return Base64("root:"+s, "-_", false) },
	"base64, pair 3":  func(s string) string { return Base64("user1:"+s+"@", "+/", true) },
	"16 bits": func(s string) string {
		return numbers(s, 2, false, func(n uint32) string { return fmt.Sprint("port:", n) })
	},
	"16 bits, little": func(s string) string {
		return numbers(s, 2, true, func(n uint32) string { return fmt.Sprintf("%d,", n) })
	},
	"16 bits, hex": func(s string) string {
		return numbers(s, 2, false, func(n uint32) string { return fmt.Sprintf("0x%x", n) })
	},
	"places":       placed,
	"milliseconds": func(s string) string { return durations(s, 2, false, time.Millisecond) },
	"ms, little":   func(s string) string { return durations(s, 2, true, time.Millisecond) },
	"ms, 3 bytes":  func(s string) string { return durations(s, 3, false, time.Millisecond) },
	"ms, 4 bytes":  func(s string) string { return durations(s, 4, true, time.Millisecond) },
	"seconds":      func(s string) string { return durations(s, 2, true, time.Second) },
	"microseconds": func(s string) string { return durations(s, 2, false, time.Microsecond) },
	"fractions": func(s string) string {
		return numbers(s, 2, false, func(n uint32) string { return fmt.Sprintf("%d.%03d", n/1000, n%1000) })
	},
	"instants":         func(s string) string { return numbers(s, 4, false, instant) },
	"instants, little": func(s string) string { return numbers(s, 4, true, instant) },
	"link-local":       linkLocal,
	"userinfo":         func(s string) string { return "https://admin:" + percent(s, false, "%02X") + "@10.0.0.1:2379/v1" },
	"userinfo, raw":    func(s string) string { return "https://admin:" + s + "@10.0.0.1:2379/v1" },
	"query":            func(s string) string { return "https://10.0.0.1/v1?token=" + percent(s, false, "%02X") },
}

// Seen returns a part of a secret that a text shows: eight consecutive bytes of the secret or its spelling, or
// numbers that hold eight bytes.
func Seen(text, way, secret string) (string, bool) {
	if what, is := Leaked(text, secret); is {
		return what, true
	}
	spelling := strings.Trim(ways[way](secret), "\"\\")
	width, numbers := widths[way]
	switch {
	case way == "userinfo", way == "userinfo, raw", way == "query": // the address around the secret is not secret
		return "", false
	case !numbers:
		return Leaked(text, spelling)
	}
	all, run := strings.Split(spelling, separator), (8+width-1)/width
	for i := 0; i+run <= len(all); i++ {
		if part := strings.Join(all[i:i+run], separator); strings.Contains(text, part) {
			return part, true
		}
	}
	return "", false
}

const separator = " "

var widths = map[string]int{
	"16 bits": 2, "16 bits, little": 2, "16 bits, hex": 2, "places": 2, "milliseconds": 2, "ms, little": 2, "ms, 3 bytes": 3, "ms, 4 bytes": 4,
	"seconds": 2, "microseconds": 2, "fractions": 2, "instants": 4, "instants, little": 4, "link-local": 6,
}

// numbers writes each width bytes as a number, without the remainder.
func numbers(s string, width int, little bool, write func(n uint32) string) string {
	var all []string
	for ; len(s) >= width; s = s[width:] {
		n := uint32(0)
		for i := range width {
			if little {
				n |= uint32(s[i]) << (8 * i)
			} else {
				n = n<<8 | uint32(s[i])
			}
		}
		all = append(all, write(n))
	}
	return strings.Join(all, separator)
}

func placed(s string) string {
	place := 0
	return numbers(s, 2, false, func(n uint32) string { place++; return fmt.Sprintf("%d:%d", place, n) })
}

func durations(s string, width int, little bool, unit time.Duration) string {
	return numbers(s, width, little, func(n uint32) string { return (time.Duration(n) * unit).String() })
}

func instant(n uint32) string { return time.Unix(int64(n), 0).UTC().Format(time.RFC3339) }

func linkLocal(s string) string {
	var all []string
	for ; len(s) >= 6; s = s[6:] {
		all = append(all, fmt.Sprintf("fe80::%x:%x:%x", s[0:2], s[2:4], s[4:6]))
	}
	return strings.Join(all, separator)
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

func percent(s string, all bool, format string) string {
	var b strings.Builder
	for i := range len(s) {
		if ch := s[i]; all || ch < '0' || ch > 'z' || ch > '9' && ch < 'A' || ch > 'Z' && ch < 'a' {
			b.WriteString("%" + fmt.Sprintf(format, ch))
		} else {
			b.WriteByte(ch)
		}
	}
	return b.String()
}

// Base64 encodes by RFC 4648, bit by bit.
func Base64(s, last string, pad bool) string {
	alphabet := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789" + last
	var b strings.Builder
	for bit := 0; bit < 8*len(s); bit += 6 {
		n := 0
		for i := bit; i < bit+6; i++ {
			n <<= 1
			if i/8 < len(s) {
				n |= int(s[i/8]) >> (7 - i%8) & 1
			}
		}
		b.WriteByte(alphabet[n])
	}
	for pad && b.Len()%4 > 0 {
		b.WriteByte('=')
	}
	return b.String()
}

// Leaked returns eight consecutive bytes of a text that the output contains, regardless of case.
func Leaked(output string, texts ...string) (string, bool) {
	output = WithoutPlaceholders(output)
	in := map[string]bool{}
	for i := range max(0, len(output)-7) {
		in[strings.ToLower(output[i:i+8])] = true
	}
	for _, text := range texts {
		for i := range max(0, len(text)-7) {
			if w := strings.ToLower(text[i : i+8]); in[w] {
				return w, true
			}
		}
	}
	return "", false
}

// WithoutPlaceholders returns a redacted text with a NUL for each placeholder.
func WithoutPlaceholders(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "‹")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, s, _ = strings.Cut(rest, "›")
		b.WriteByte(0)
	}
}
