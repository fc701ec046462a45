package kernels

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// probe.enabled = false takes all programs out of a busy kernel, within seconds of its own time, and true brings the
// traces back.
func TestTheProbeDetachesFromABusyKernel(t *testing.T) {
	for name, within := range map[string]time.Duration{"6.1": time.Second, "newest": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			k := named(name)
			k.options = "cniscope.detach=1"
			r := boot(t, k)
			programs, took := 0, 0
			_, _ = fmt.Sscan(strings.Join(r.said["detached"], ""), &programs, &took)
			if programs == 0 {
				t.Fatalf("the machine did not say all it should:\n%s", r.console)
			}
			t.Logf("%s: %d programs gone after %s", r.release, programs, micro(took))
			if micro(took) > within {
				t.Errorf("want them gone within %s", within)
			}
		})
	}
}
