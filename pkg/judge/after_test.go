package judge

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestWorkBehindAnADD(t *testing.T) {
	const second = int64(time.Second)
	o := Options{Thresholds: Thresholds{Command: time.Second}}
	for name, test := range map[string]struct {
		program string
		exit    model.Exit
		took    int64
		says    string
		cause   Cause
	}{
		"quick": {"netsh", model.Exit{Ended: true}, second / 2, "", ""},
		"slow":  {"powershell", model.Exit{Ended: true}, 3 * second, "antrea-agent ran powershell for the pod until 5s after its ADD returned; the run took 3s", CausePowerShell},
		"hung":  {"netsh", model.Exit{}, 3 * second, "antrea-agent ran netsh for the pod until 5s after its ADD returned; the run took 3s and was not over", CauseCommand},
		"failed": {
			"netsh",
			model.Exit{Ended: true, Code: 1},
			second / 2,
			"antrea-agent ran netsh for the pod until 2.5s after its ADD returned; the run took 500ms and failed: netsh exited 1", CauseCommand,
		},
	} {
		t.Run(name, func(t *testing.T) {
			im := &model.Image{Program: model.Program{Name: test.program}, Exit: test.exit, Start: 3 * second, End: 3*second + test.took, By: &event.Actor{Name: "antrea-agent"}}
			j := o.After(model.After{Flight: model.Flight{Command: "ADD"}, End: second, Image: im})
			if j.Says != test.says || j.Cause != test.cause {
				t.Errorf("%q, %s", j.Says, j.Cause)
			}
		})
	}
}
