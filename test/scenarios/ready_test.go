//go:build linux

package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/spans"
)

// A node without a network reports the duration, and new files in the CNI directory.
func TestANodeWhoseNetworkIsNotReady(t *testing.T) {
	s := set(t, rig.Options{Networks: []rig.Network{}}, "[slow]\nreadiness = \"1s\"\n")
	harness.Check(t, s.scope.WaitLog(s.ctx, "CNI networks", 1))
	harness.Check(t, s.scope.WaitLog(s.ctx, "the node's network is still not ready", 1))
	if said := lines(s.scope.LogText(), "still not ready"); !strings.Contains(said[0], "cause=cni_configuration") || !strings.Contains(said[0], "no CNI configuration has been written into "+s.rig.CNIConfDir()) {
		t.Errorf("%s", said)
	}
	harness.Check(t, s.rig.SetNetworks(s.ctx, rig.Network{Name: "at-last", Plugins: []rig.Plugin{rig.Bridge()}}))
	named := func(name string) (found *span) {
		s.Helper()
		harness.Eventually(s, func() error {
			all, err := spans.Read(s.spans)
			i := slices.IndexFunc(all, func(x *span) bool { return x.Name == name })
			if i < 0 {
				return errors.Join(err, fmt.Errorf("no %q among %d", name, len(all)))
			}
			found = all[i]
			return nil
		})
		return found
	}
	outage := named("node network not ready")
	if !strings.Contains(outage.Attrs["cniscope.reason"], "cni plugin not initialized") || !strings.Contains(outage.Attrs["cniscope.networks"], "at-last: bridge") {
		t.Errorf("%v", outage.Attrs)
	}
	first := ""
	for _, e := range outage.Events {
		if e.Name == "CNI folder" && first == "" {
			first = spans.Texts(e.Attributes)["cniscope.networks"]
		}
	}
	harness.Equal(t, first, "no network", "the folder held at first")
	if !strings.Contains(outage.Attrs["cniscope.verdict"], "no CNI configuration has been written into") || outage.Attrs["cniscope.cause"] != "cni_configuration" || outage.Attrs["cniscope.slow"] != "true" {
		t.Errorf("it does not say what was missing: %v", outage.Attrs)
	}
	if outage.Took() <= 0 {
		t.Errorf("it took %f ms", outage.Took())
	}
	harness.Eventually(s, func() error {
		_, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "web-0"})
		return err
	})
	whole, sum := named("node bring-up"), 0.0
	for _, stage := range []string{"runtime start", "wait for CNI configuration", "wait for pod", "first pod"} {
		sum += named(stage).Took()
	}
	if d := whole.Took() - sum; d > 0.001 || d < -0.001 || whole.Attrs["cniscope.cause"] == "" || whole.Attrs["k8s.pod.name"] != "web-0" {
		t.Errorf("%f ms of it are in no stage: %v", d, whole.Attrs)
	}
}
