package leak

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// A thing counts if it was set for the call, in the node's namespace, and neither it nor its interface was taken away.
func TestWhatAnADDSetOnTheNode(t *testing.T) {
	node, pod := event.Namespace{Key: "node"}, event.Namespace{Key: "pod"}
	run := &model.Image{Program: model.Program{NetNS: node}, Run: &model.Run{Plugin: "p", Command: "ADD"}}
	command := &model.Image{Program: model.Program{NetNS: node}}
	doubtful := &model.Image{Attribution: &model.Attribution{Evidence: model.Candidate}}
	run.Children = []*model.Image{command, doubtful}
	at := int64(0)
	ask := func(im *model.Image, verb event.Verb, q event.Request, on, under, errno string) {
		at++
		q.Verb, q.Protocol = verb, "rtnetlink"
		if q.NetNS == (event.Namespace{}) {
			q.NetNS = node
		}
		r := &model.Request{Request: &q, On: on, Under: under}
		if errno != "" {
			r.Answer = &event.Answer{Error: errno}
		}
		im.Facts = append(im.Facts, &model.Fact{When: model.Interval{Start: at, End: at}, What: r})
	}
	rule := event.Request{Object: event.ObjectRule, Address: "10.0.0.5/32", Table: "7"}
	route := func(to string) event.Request { return event.Request{Object: event.ObjectRoute, Route: to} }
	address := func(prefix string) event.Request { return event.Request{Object: event.ObjectAddress, Address: prefix} }
	link := func(to event.Namespace) event.Request {
		return event.Request{Object: event.ObjectLink, Interface: event.Interface{NetNS: to}}
	}
	ask(run, event.VerbAdd, link(event.Namespace{}), "veth1", "cni0", "")
	ask(command, event.VerbAdd, rule, "", "", "")
	ask(command, event.VerbDelete, rule, "", "", "")
	ask(run, event.VerbAdd, rule, "", "", "")
	ask(run, event.VerbAdd, route("10.0.0.5/32"), "veth1", "", "")
	ask(command, event.VerbAdd, route("10.0.0.6/32"), "veth1", "", "")
	ask(run, event.VerbDelete, route("10.0.0.6/32"), "veth1", "", "")
	ask(run, event.VerbAdd, route("10.0.0.7/32"), "veth1", "", "EINVAL")
	ask(run, event.VerbQuery, route("10.0.0.8/32"), "veth1", "", "")
	ask(doubtful, event.VerbAdd, route("10.0.0.9/32"), "veth1", "", "")
	inPod := route("default")
	inPod.NetNS = pod
	ask(run, event.VerbAdd, inPod, "eth0", "", "")
	ask(run, event.VerbAdd, address("10.0.0.1/24"), "cni0", "", "")
	ask(run, event.VerbAdd, address("10.0.0.2/24"), "tmp0", "", "")
	ask(run, event.VerbChange, link(pod), "tmp0", "", "")
	ask(run, event.VerbAdd, event.Request{Object: event.ObjectRule, Table: "9"}, "", "", "") // by its mark
	harness.EqualSlices(t, Set(&model.Call{Runs: []*model.Image{run}}), []string{
		"port veth1 of cni0", "rule from 10.0.0.5/32 lookup 7", "route 10.0.0.5/32", "address 10.0.0.1/24 dev cni0",
	}, "set")
}
