//go:build linux

package upgrade

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Upgraded, rolled back and upgraded again, each version reads what the other left, and answers the other's commands.
func TestEachVersionReadsWhatTheOtherLeft(t *testing.T) {
	n := newNode(t)
	var pods []string
	for _, p := range []programs{before, now, before, now} {
		end := n.observes(p)
		pods = append(pods, n.pod())
		n.says(p, "show --last 1h", pods...)
		n.says(p, "baseline", fmt.Sprintf(`bridge +ADD +%d `, n.pods))
		if log := n.scope.LogText(); strings.Contains(log, "level=ERROR") || unread.MatchString(log) {
			t.Errorf("%s found fault with what it read:\n%s", p, log)
		}
		other := now
		if p == now {
			other = before
		}
		last := pods[len(pods)-1]
		for arguments, text := range map[string]string{
			"ps": "no CNI call", "top": " in the last |" + restart, "why shop/" + last: "shop/" + last + "|" + restart,
		} {
			n.says(other, arguments, text)
		}
		end()
	}
}

// unread matches warnings about files.
var unread = regexp.MustCompile(`level=WARN msg="[^"]*(spool|baseline|usual|segment|learnt)`)
