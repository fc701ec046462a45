//go:build linux

package e2e

import (
	"fmt"
	"sync"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// A burst of ordinary pods gives up to per_second whole traces per second, and a summary of every pod.
func TestAStormOfPods(t *testing.T) {
	const pods, perSecond = 100, 1
	// Slow operations have a separate budget.
	const never = "call = '10m'\ncommand = '10m'\nagent = '10m'\nlock = '10m'\n"
	s := set(t, false, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(rig.Conf{"ipMasq": false})}}},
	}, scope.Options{TOML: fmt.Sprintf("[sampling]\nper_second = %d\n[slow]\n%s", perSecond, never)})
	var running sync.WaitGroup
	for worker := range 6 {
		running.Go(func() {
			for i := worker; i < pods; i += 6 {
				id, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: fmt.Sprint("pod-", i)})
				if err == nil {
					err = s.rig.RemovePod(s.ctx, id)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	all := s.calls("ADD", 2*pods)

	summaries := map[string]bool{}
	for _, x := range only(all, "call", "CNI ADD") {
		summaries[x.text("k8s.pod.name")] = true
	}
	harness.Equal(t, len(summaries), pods, "pods have a summary")
	// A whole operation has a plugin's span. Rates per second are tested with the limiter, since spans do not
	// tell the time of the decision.
	traces := map[string]bool{}
	for _, x := range only(all, "plugin", "bridge ADD") {
		traces[x.trace()] = true
	}
	first, last := all[0].StartTimeUnixNano, all[0].EndTimeUnixNano
	for _, x := range all {
		first, last = min(first, x.StartTimeUnixNano), max(last, x.EndTimeUnixNano)
	}
	seconds := float64(last-first)/1e9 + 2 // until the last decision
	whole, most := len(traces), int(perSecond*seconds)
	if whole == 0 || whole > most {
		t.Errorf("%d of %d traces are whole, in %.0f s, want %d at most", whole, pods, seconds, most)
	}
	if most >= pods {
		t.Logf("%d pods in %.0f s are no storm", pods, seconds)
	}
	t.Logf("%d of %d setups were kept whole, in %.0f s", whole, pods, seconds)
}
