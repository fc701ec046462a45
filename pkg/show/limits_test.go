package show

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/cniscope/cniscope/test/harness"
)

func TestLimits(t *testing.T) {
	zero, two := 0, 2
	slow := add(900, run("policyctl", 100, 800)).with(attribute.String("cniscope.verdict", "700 ms in policyctl"))
	many := add(100, runs(3, "iptables", 10)...)
	broken := add(3).failing("bridge exited 1")
	reduced := span{kind: "call", name: "CNI ADD", to: 100}.with(attribute.Bool("cniscope.reduced", true),
		attribute.Int("cniscope.commands", 30))

	for name, c := range map[string]struct {
		limits Limits
		calls  []span
		want   []string
	}{
		"a call": {
			Limits{Call: 500 * time.Millisecond},
			[]span{slow, many},
			[]string{"shop/web-0  CNI ADD eth0 took 900ms, more than 500ms; 700 ms in policyctl (--max-call)"},
		},
		"exactly": {Limits{Call: 900 * time.Millisecond}, []span{slow}, nil},
		"a command": {
			Limits{Command: 250 * time.Millisecond},
			[]span{many, slow},
			[]string{"shop/web-1  CNI ADD eth0 ran policyctl for 700ms, more than 250ms (--max-command)"},
		},
		"commands": {
			Limits{Commands: &two},
			[]span{many, slow},
			[]string{"shop/web-0  CNI ADD eth0 ran 3 commands, more than 2: iptables 3 times (--max-commands)"},
		},
		"none may be run": {
			Limits{Commands: &zero},
			[]span{slow, broken},
			[]string{"shop/web-0  CNI ADD eth0 ran 1 command, more than 0: policyctl 1 time (--max-commands)"},
		},
		"spans that are not": {
			Limits{Commands: &two},
			[]span{reduced},
			[]string{"shop/web-0  CNI ADD eth0 ran 30 commands, more than 2 (--max-commands)"},
		},
		"none may fail": {
			Limits{Failed: &zero},
			[]span{broken, slow},
			[]string{"shop/web-0  CNI ADD eth0 failed: bridge exited 1 (--max-failed)"},
		},
		"two may fail": {Limits{Failed: &two}, []span{broken, broken}, nil},
		"several at once": {
			Limits{Call: time.Millisecond, Failed: &zero},
			[]span{broken},
			[]string{
				"shop/web-0  CNI ADD eth0 took 3ms, more than 1ms; bridge exited 1 (--max-call)",
				"shop/web-0  CNI ADD eth0 failed: bridge exited 1 (--max-failed)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			checked := c.limits.Check(pods(c.calls...))
			if checked.Calls != len(c.calls) || len(checked.Crossed) != len(c.want) {
				t.Fatalf("%+v", checked)
			}
			for i, got := range checked.Crossed {
				harness.Equal(t, got.String(), c.want[i])
			}
		})
	}
	if checked := (Limits{Call: time.Second}).
		Check(pods(reduced, slow.with(attribute.Bool("cniscope.partial", true)))); checked.Partial != 2 {
		t.Errorf("%+v", checked)
	}
}
