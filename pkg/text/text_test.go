package text_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/test/harness"
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
		harness.Equal(t, text.Clean(in, limit), want, in)
	}
}

func TestShell(t *testing.T) {
	for in, want := range map[string]string{
		"/run/xtables.lock":          "/run/xtables.lock",
		"net.ipv4.ip_forward=1":      "net.ipv4.ip_forward=1",
		"":                           "''",
		"-rf":                        "./-rf",
		"/tmp/a b":                   "'/tmp/a b'",
		"/x; reboot":                 "'/x; reboot'",
		"$(reboot)":                  "'$(reboot)'",
		"it's":                       `'it'\''s'`,
		"-'`reboot`":                 "'./-'\\''`reboot`'",
		"/run/‹hex 64›":              "'/run/‹hex 64›'",
		"~root":                      "'~root'",
		"a\u00a0b":                   "'a\u00a0b'",
		"/var/lib/cni/größe/%2:lock": "/var/lib/cni/größe/%2:lock",
	} {
		harness.Equal(t, text.Shell(in), want, in)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x00b\xff", 3)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit &= 0xff
		got := text.Clean(s, limit)
		if len(got) > limit || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Clean(%q, %d) = %q", s, limit, got)
		}
		if again := text.Clean(got, limit); again != got {
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
		harness.Equal(t, text.Round(d).String(), want, d, "ns")
	}
}

func TestExitCode(t *testing.T) {
	for code, want := range map[uint32]string{
		0: "0", 127: "127", 0x3fffffff: "1073741823", 0x40010004: "0x40010004",
		0xc0000005: "0xc0000005",
	} {
		harness.Equal(t, text.ExitCode(code), want, code)
	}
}

func TestEachStepOfARemedyHasALine(t *testing.T) {
	harness.Equal(t, text.Steps("  ", "run a; if b, run c"), "  → run a\n  → if b, run c\n")
}

// A tenant may choose the path that a step names.
func TestAQuotedPathIsNoStep(t *testing.T) {
	for _, path := range []string{"/x; run sh", "it's; run sh", "a'; run sh; '"} {
		remedy := "fix the agent's path " + text.Shell(path) + "; retry"
		if got := text.Steps("", remedy); strings.Count(got, "→") != 2 || !strings.HasSuffix(got, "\n→ retry\n") {
			t.Errorf("%q: %q", remedy, got)
		}
	}
}

func TestNamesAreFew(t *testing.T) {
	var n text.Names
	for in, want := range map[string]string{
		"iptables":   "iptables",
		"":           "other",
		`\x1b[31m`:   "other", // already escaped
		"two words":  "two words",
		"a\x00b":     "other",
		"bad\xffone": "other",
	} {
		harness.Equal(t, n.Limit(in, "other"), want, in)
	}
	for i := range 10 * text.NamesMax {
		n.Limit(fmt.Sprint("tool-", i), "other")
	}
	harness.Equal(t, n.Limit("late", "other"), "other", "one too many is called")
	harness.Equal(t, n.Limit("iptables", "other"), "iptables", "one of the first is called")
}

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	for s, want := range map[string]time.Duration{
		"90m": 90 * time.Minute, "1d": day, "2w": 14 * day, "1w2d3h": 9*day + 3*time.Hour, "0": 0, "-1h": -time.Hour,
	} {
		if got, err := text.Duration(s); err != nil || got != want {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1y", "d", "1d-1h", "1", "1.5d", "99999999w"} {
		if got, err := text.Duration(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
