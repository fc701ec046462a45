package text_test

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/test/harness"
)

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
