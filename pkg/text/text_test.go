package text

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"iptables":             "iptables",
		"grüße":                "grüße",
		"a\nb\tc":              `a\nb\tc`,
		"\x1b[31mred":          `\x1b[31mred`,
		"bad\xffbyte":          `bad\xffbyte`,
		"right\u202eleft":      `right\u202eleft`,
		"\ufffd is itself":     "\ufffd is itself",
		strings.Repeat("x", 9): "xxxxx…",
		"xxxxxxé":              "xxxxx…",
	} {
		limit := 64
		if strings.HasPrefix(in, "xxx") {
			limit = 8
			if in == "xxxxxxé" {
				limit = 7
				want = "xxxx…"
			}
		}
		if got := Clean(in, limit); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x00b\xff", 3)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit &= 0xff
		got := Clean(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || !plain(got) {
			t.Errorf("Clean(%q, %d) = %q", s, limit, got)
		}
		if again := Clean(got, limit); again != got {
			t.Errorf("cleaning twice: %q, then %q", got, again)
		}
	})
}

func TestDurationsAreRoundedToWhatAPersonReads(t *testing.T) {
	for d, want := range map[time.Duration]string{
		12345 * time.Nanosecond:     "10µs",
		1234567 * time.Nanosecond:   "1.23ms",
		12345678 * time.Nanosecond:  "12.3ms",
		1234567 * time.Microsecond:  "1.23s",
		61234567 * time.Microsecond: "1m1.2s",
	} {
		if got := Round(d).String(); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

func TestExitCode(t *testing.T) {
	for code, want := range map[uint32]string{0: "0", 127: "127", 0x3fffffff: "1073741823", 0x40010004: "0x40010004", 0xc0000005: "0xc0000005"} {
		if got := ExitCode(code); got != want {
			t.Errorf("%d: %s, want %s", code, got, want)
		}
	}
}
