package removal

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatIsSaidOfAStep(t *testing.T) {
	of := &event.Sandbox{}
	for _, c := range []struct {
		step          Step
		command, says string
	}{
		{
			Step{Sandbox: of, Cause: judge.CauseShim, undated: true, Waits: "do_signal_stop", does: "the shim (pid 7) is stopped"},
			"StopPodSandbox", "3s so far: the shim (pid 7) is stopped",
		},
		{
			Step{Sandbox: of, Waits: "pipe_read", does: "runc kill (pid 7)"},
			"StopPodSandbox", "3s so far: runc kill (pid 7) waits in pipe_read",
		},
		{Step{Sandbox: of, container: true, does: "runc kill (pid 7)"}, "StopContainer", "3s so far: runc kill (pid 7) runs"},
		{Step{Name: "umount2", State: "D", does: "umount2 of x"}, "StopPodSandbox", "3s so far: umount2 of x waits in the kernel"},
		{Step{Name: "mount", Waits: "x", does: "mount of x"}, "RunPodSandbox", "3s so far: mount of x waits in x"},
	} {
		c.step.PID, c.step.Age = 7, 3*time.Second
		harness.Equal(t, c.step.Command(), c.command, "command")
		harness.Equal(t, c.step.Says(), c.says, "verdict")
	}
}
