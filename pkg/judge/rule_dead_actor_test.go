package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// vsctl is an ADD whose agent runs ovs-vsctl for a time, and what was found then.
func vsctl(took int64, f *event.Found, acts ...func(*model.Image)) *model.Operation {
	command := ran("ovs-vsctl", 10, 10+took)
	acts = append([]func(*model.Image){dialled("unix", "/run/a.sock", from(0, 2990), served([]*model.Image{command}, nil))}, acts...)
	op := add(seen(plugin("p", 0, 3000), acts...))
	op.Calls[0].Found = f
	return op
}

func TestACommandWaitsForADeadProcess(t *testing.T) {
	process := func(absent bool) *event.Found {
		return &event.Found{Kind: event.FoundProcess, Name: "ovs-vswitchd", Absent: absent}
	}
	failed := func(op *model.Operation) *model.Operation { op.Calls[0].Runs[0].Code = 1; return op }
	const says, remedy, report = `of 3s: plugin p waited for ovs-vswitchd \(not running\), through ovs-vsctl$`, `^start ovs-vswitchd`, "openshift/origin#19531"
	rulings(t, map[string]ruling{
		"it is dead":                    {op: vsctl(2900, process(true)), cause: CausePeer, says: says, remedy: remedy, report: report},
		"the call fails":                {op: failed(vsctl(2900, process(true), wrote("signal: alarm clock"))), cause: CausePeer, says: `^plugin p failed.*alarm clock.*; 2.9s ` + says, remedy: remedy, report: report},
		"control: it lives":             {op: vsctl(2900, process(false)), cause: CauseCommand, says: `ran ovs-vsctl`, remedy: `^replace ovs-vsctl`, report: "-"},
		"control: it was not looked at": {op: vsctl(2900, &event.Found{Kind: event.FoundProcess, Unseen: "no"}), cause: CauseCommand, says: `ran ovs-vsctl`, report: "-"},
	})
	_, got := Wants(vsctl(2900, nil))
	harness.DeepEqual(t, got, &event.Want{Kind: event.FoundProcess, Name: "ovs-vswitchd"})
	if _, got := Wants(vsctl(900, nil)); got != nil {
		t.Errorf("a short command wants %+v", got)
	}
}
