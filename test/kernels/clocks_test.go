package kernels

import (
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/kernels/traced"
)

var stepping = []string{"5.10", "6.1", "6.12", "newest", "6.12, connector"}

// Across clock steps and suspends each call keeps one trace, its duration and its start.
func TestCallsAcrossStepsOfTheClock(t *testing.T) {
	which := os.Getenv("CNISCOPE_CLOCKS")
	if which == "" {
		t.Skip("make test-clocks runs it")
	}
	for _, name := range stepping {
		if which != "all" && which != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			k := named(name)
			k.options += " cniscope.clocks=1"
			k.programs = map[string]string{"collector": "./collector"}
			r := boot(t, k, "-smp", "1")
			turned, runs, spans := r.said["turned"], decoded[traced.Run](t, r.said["called"]), decoded[traced.Span](t, r.said["span"])
			t.Logf("the clock was %s, not %s; %d runs, %d spans", strings.Join(turned, ", "), r.said["not"], len(runs), len(spans))
			if len(turned) < 5 || len(runs) == 0 {
				t.Fatalf("the machine did not come to its end:\n%s", r.console)
			}
			for _, wrong := range traced.Compare(runs, spans) {
				t.Error(wrong)
			}
			if t.Failed() {
				t.Log(string(r.console))
			}
		})
	}
}
