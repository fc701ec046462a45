package text

import (
	"fmt"
	"testing"
)

func TestNamesAreFew(t *testing.T) {
	var n Names
	for in, want := range map[string]string{
		"iptables":   "iptables",
		"":           "other",
		`\x1b[31m`:   "other", // already escaped
		"two words":  "two words",
		"a\x00b":     "other",
		"bad\xffone": "other",
	} {
		if got := n.Limit(in, "other"); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for i := range 10 * NamesMax {
		n.Limit(fmt.Sprint("tool-", i), "other")
	}
	if got := n.Limit("late", "other"); got != "other" {
		t.Errorf("one too many is called %q", got)
	}
	if got := n.Limit("iptables", "other"); got != "iptables" {
		t.Errorf("one of the first is called %q", got)
	}
}
