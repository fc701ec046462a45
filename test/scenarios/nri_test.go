//go:build linux

package scenarios

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// sleeper is an NRI plugin that sleeps before each sandbox runs.
type sleeper struct {
	long  time.Duration
	ready chan struct{}
}

func (s sleeper) RunPodSandbox(context.Context, *api.PodSandbox) error {
	time.Sleep(s.long) // the fault
	return nil
}

func (s sleeper) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	close(s.ready)
	return nil, nil
}

// An NRI plugin that the runtime calls before cniscope, and that takes its time, is named. A quick one is not.
func TestAnotherNRIPlugin(t *testing.T) {
	s := set(t, rig.Options{}, "")
	s.network("pods", rig.Bridge())
	const late = "sandbox reported late"
	for i, long := range []time.Duration{0, 1500 * time.Millisecond} {
		ready := make(chan struct{})
		p, err := stub.New(sleeper{long, ready}, stub.WithPluginName("sleeper"), stub.WithPluginIdx(fmt.Sprint("1", i)), stub.WithSocketPath(s.rig.NRISocket()))
		harness.Check(t, err)
		go func() { _ = p.Run(s.ctx) }()
		<-ready
		s.add(rig.PodOptions{}, false)
		p.Stop()
		said := lines(s.scope.LogText(), late)
		if long == 0 {
			harness.EqualSlices(t, said, nil, "beside a quick plugin")
			continue
		}
		if len(said) != 1 {
			t.Fatalf("%q", said)
		}
		harness.Says(t, said[0], "pod=shop/pod-2 ", fmt.Sprintf("also calls scenarios.test (pid %d)", os.Getpid()), "cause=runtime", "speed up its RunPodSandbox")
	}
	s.add(rig.PodOptions{}, false)
	harness.Equal(t, len(lines(s.scope.LogText(), late)), 1, "late sandboxes after the plugin ended")
}
