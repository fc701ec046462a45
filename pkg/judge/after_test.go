package judge

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/timeline"
)

func TestWorkBehindAnADD(t *testing.T) {
	const second = int64(time.Second)
	o := Options{Thresholds: Thresholds{Command: time.Second}}
	for name, test := range map[string]struct {
		program string
		exit    timeline.Exit
		took    int64
		says    string
		cause   Cause
	}{
		"quick": {"netsh", timeline.Exit{Ended: true}, second / 2, "", ""},
		"slow":  {"powershell", timeline.Exit{Ended: true}, 3 * second, "the pod's network was worked on until 5s after its ADD had returned: powershell, run by antrea-agent, took 3s", CausePowerShell},
		"hung":  {"netsh", timeline.Exit{}, 3 * second, "the pod's network was worked on until 5s after its ADD had returned: netsh, run by antrea-agent, took 3s and was not over", CauseCommand},
		"failed": {
			"netsh",
			timeline.Exit{Ended: true, Code: 1},
			second / 2,
			"the pod's network was worked on until 2.5s after its ADD had returned: netsh, run by antrea-agent, took 500ms and failed: netsh exited 1", CauseCommand,
		},
	} {
		t.Run(name, func(t *testing.T) {
			im := &timeline.Image{Program: timeline.Program{Name: test.program}, Exit: test.exit, Start: 3 * second, End: 3*second + test.took, By: &event.Actor{Name: "antrea-agent"}}
			j := o.After(timeline.After{Flight: timeline.Flight{Command: "ADD"}, End: second, Image: im})
			if j.Says != test.says || j.Cause != test.cause {
				t.Errorf("%q, %s", j.Says, j.Cause)
			}
		})
	}
}
