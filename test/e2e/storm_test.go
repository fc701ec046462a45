//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// A storm of 300 slow pods gives at most per_second whole traces in any second, and a
// summary of every pod.
func TestAStormOfSlowPods(t *testing.T) {
	const pods, perSecond = 300, 2
	s := set(t, false, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(rig.Conf{"ipMasq": false})}}},
	}, scope.Options{TOML: fmt.Sprintf("[sampling]\nper_second = %d\n[slow]\ncall = \"1us\"\n", perSecond)})
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
	if len(summaries) != pods {
		t.Errorf("%d of %d pods have a summary", len(summaries), pods)
	}
	// An operation is whole if it has a plugin's span. NRI ends a setup within two ticks
	// of its last exit, so whole ones that ended in any half second are of one second.
	var whole []uint64
	traces := map[string]bool{}
	for _, x := range only(all, "plugin", "bridge ADD") {
		if !traces[x.trace()] {
			traces[x.trace()] = true
			whole = append(whole, x.EndTimeUnixNano)
		}
	}
	slices.Sort(whole)
	for i := perSecond; i < len(whole); i++ {
		if d := time.Duration(whole[i] - whole[i-perSecond]); d < 500*time.Millisecond {
			t.Errorf("%d whole traces within %s", perSecond+1, d)
		}
	}
	if len(whole) == 0 || len(whole) > pods/2 {
		t.Errorf("%d of %d traces are whole", len(whole), pods)
	}
	t.Logf("%d of %d setups were kept whole", len(whole), pods)
}
