// Package spelled writes secrets in every way that redaction knows, and finds them in texts. Encoders and search
// are its own, since those of pkg/redact are what is tested.
package spelled

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// Ways returns the ways in which a text may repeat a secret, by name.
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
	"userinfo":        func(s string) string { return "https://admin:" + percent(s, false, "%02X") + "@10.0.0.1:2379/v1" },
	"userinfo, raw":   func(s string) string { return "https://admin:" + s + "@10.0.0.1:2379/v1" },
	"query":           func(s string) string { return "https://10.0.0.1/v1?token=" + percent(s, false, "%02X") },
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

// Base64 encodes as RFC 4648 has it, bit by bit.
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

// Leaked returns eight bytes in a row of any of the texts that are in the output, cases not
// told apart.
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
