package judge

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
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

func TestWhatAnOutageWasSpentWaitingFor(t *testing.T) {
	const s = int64(time.Second)
	lack := func(at int64, what event.Lack, text string) model.Lack {
		return model.Lack{Said: model.Said{At: at, Text: text}, What: what}
	}
	tests := map[string]struct {
		lacks []model.Lack
		want  Awaited
	}{
		"nobody looked":                   {nil, Awaited{}},
		"the first counts from the start": {[]model.Lack{lack(12*s, event.LackConfiguration, "a")}, Awaited{event.LackConfiguration, "1m10s of 1m10s: a", 70 * time.Second}},
		"the longest":                     {[]model.Lack{lack(10*s, event.LackRuntime, "a"), lack(20*s, event.LackPlugin, "b")}, Awaited{event.LackPlugin, "1m0s of 1m10s: b", time.Minute}},
		"the same lack, in other words":   {[]model.Lack{lack(10*s, event.LackConfiguration, "a"), lack(30*s, event.LackConfiguration, "b"), lack(50*s, event.LackPlugin, "c")}, Awaited{event.LackConfiguration, "40s of 1m10s: b", 40 * time.Second}},
		"one that comes again adds up":    {[]model.Lack{lack(10*s, event.LackPlugin, "a"), lack(30*s, event.LackStatus, "b"), lack(60*s, event.LackPlugin, "c")}, Awaited{event.LackPlugin, "40s of 1m10s: c", 40 * time.Second}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := model.Outage{Interval: model.Interval{Start: 10 * s, End: 80 * s}, Lacks: test.lacks}
			harness.Equal(t, Outage(o), test.want)
		})
	}
}
