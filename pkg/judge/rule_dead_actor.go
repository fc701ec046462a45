package judge

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// actorOf names the process that acts on what a command wrote.
func actorOf(command string) string {
	if command == "ovs-vsctl" {
		return "ovs-vswitchd"
	}
	return ""
}

func actsFor(call *model.Call) (name string) {
	for _, run := range call.Runs {
		run.Walk(func(im *model.Image) {
			if took := im.End - im.Start; took > (call.End-call.Start)/2 && took > int64(time.Second) {
				name = cmp.Or(name, actorOf(im.Name))
			}
		})
	}
	return name
}

func deadActor(e *evidence) *finding {
	found := e.call.Found
	if found == nil || found.Kind != event.FoundProcess || !found.Absent {
		return nil
	}
	var most *span
	for i := range e.spans {
		if s := &e.spans[i]; actorOf(s.image.Name) == found.Name && (most == nil || s.end-s.start > most.end-most.start) {
			most = s
		}
	}
	if most == nil {
		return nil
	}
	command := most.image.Name
	return &finding{
		Verdict: Verdict{
			Cause:  CausePeer,
			Says:   fmt.Sprintf("plugin %s waited for %s (not running), through %s", most.plugin, found.Name, command),
			Report: "openshift/origin#19531",
			Remedy: fmt.Sprintf("start %s (systemctl restart openvswitch-switch or openvswitch, or delete its pod), "+
				"and give %s --timeout, which has no limit by default", found.Name, command),
		}, time: time.Duration(most.end - most.start), kind: Agents, shared: most.candidate, agent: most.served, heldUp: true,
		known: true,
	}
}
