package timeline

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func saidOfRequest(r *model.Request, when model.Interval) string {
	s := fmt.Sprintf("%s %d-%d", r.Name, when.Start/ms, when.End/ms)
	if r.On != "" {
		s += " on " + r.On
	}
	if r.Under != "" {
		s += " under " + r.Under
	}
	if r.Errno() != "" {
		s += ": " + r.Errno()
		if !r.Failed() {
			s += " (no error)"
		}
	}
	if r.Answer != nil && r.Answer.Message != "" {
		s += " " + r.Answer.Message
	}
	return s
}

func TestRequests(t *testing.T) {
	stories{
		"changes are kept, queries if they take long": {func(s *story) {
			s.ask(1, 1, "b", "RTM_GETLINK").ask(2, 2, "b", "RTM_NEWLINK").ask(3, 9, "b", "RTM_GETRULE")
		}, "RTM_NEWLINK 2-2\nRTM_GETRULE 3-9"},
		"an answer finds its request, told before it or after": {func(s *story) {
			s.ask(1, 1, "b", "RTM_NEWLINK", sequence(1)).ask(2, 2, "b", "RTM_NEWROUTE", sequence(2)).
				answer(3, "b", 1, "EBUSY", "Device is in use").answer(4, "b", 3, "EINVAL", "").
				ask(4, 4, "b", "RTM_NEWADDR", sequence(3))
		}, "RTM_NEWLINK 1-1: EBUSY Device is in use\nRTM_NEWROUTE 2-2\nRTM_NEWADDR 4-4: EINVAL"},
		"an answer to one of many messages finds the kind it belongs to": {func(s *story) {
			s.ask(1, 1, "b", "NFT_MSG_NEWRULE", sequence(10), times(9)).ask(1, 1, "b", "NFT_MSG_NEWCHAIN", sequence(20)).
				answer(2, "b", 15, "EINVAL", "")
		}, "NFT_MSG_NEWRULE 1-1: EINVAL\nNFT_MSG_NEWCHAIN 1-1"},
		"what only tries whether something is there does not fail": {
			func(s *story) {
				s.ask(1, 1, "b", "RTM_NEWLINK", sequence(1), exclusive).answer(1, "b", 1, "EEXIST", "").
					ask(2, 2, "b", "RTM_DELROUTE", sequence(2)).answer(2, "b", 2, "ESRCH", "").
					ask(3, 3, "b", "RTM_NEWADDR", sequence(3)).answer(3, "b", 3, "EEXIST", "").
					ask(4, 4, "b", "RTM_NEWROUTE", sequence(4)).answer(4, "b", 4, "ENODEV", "")
			},
			"RTM_NEWLINK 1-1: EEXIST (no error)\nRTM_DELROUTE 2-2: ESRCH (no error)\nRTM_NEWADDR 3-3: EEXIST\nRTM_NEWROUTE 4-4: ENODEV",
		},
		"an interface is known by its name as soon as that was said once": {func(s *story) {
			s.ask(1, 1, "b", "RTM_NEWADDR", about(7, ""), address("10.22.0.5/16")).
				ask(2, 2, "b", "RTM_NEWLINK", about(7, "eth0")).
				ask(3, 3, "b", "RTM_NEWLINK", about(9, "cni0")).
				ask(4, 4, "b", "RTM_NEWLINK", about(8, ""), func(r *event.Request) { r.Interface.Master = 9 })
		}, "RTM_NEWADDR 1-1 on eth0\nRTM_NEWLINK 2-2 on eth0\nRTM_NEWLINK 3-3 on cni0\nRTM_NEWLINK 4-4 under cni0"},
		"a query that is not kept tells it, too": {func(s *story) {
			s.ask(1, 1, "b", "RTM_GETLINK", about(7, "eth0")).ask(2, 2, "b", "RTM_NEWADDR", about(7, ""))
		}, "RTM_NEWADDR 2-2 on eth0"},
		"lo is the first everywhere": {
			func(s *story) { s.ask(1, 1, "b", "RTM_NEWLINK", about(1, "")) },
			"RTM_NEWLINK 1-1 on lo",
		},
		"and keeps it where it is moved to": {func(s *story) {
			pod := event.Namespace{Key: "pod"}
			s.ask(1, 1, "b", "RTM_NEWLINK", about(7, "veth1"), func(r *event.Request) { r.Interface.NetNS = pod }).
				ask(2, 2, "b", "RTM_NEWADDR", about(7, ""), func(r *event.Request) { r.NetNS = pod }).
				ask(3, 3, "b", "RTM_NEWADDR", about(7, ""), func(r *event.Request) { r.NetNS.Key = "other" })
		}, "RTM_NEWLINK 1-1 on veth1\nRTM_NEWADDR 2-2 on veth1\nRTM_NEWADDR 3-3"},
	}.each(t, bridging, func(s *story) string {
		return lines(s.exit(50, "b").tick(2000).inside("bridge"), saidOfRequest)
	})
}

// Names that the kernel returned to any followed process, an agent too and before the call, resolve an index; where
// namespaces lack a unique key, only names within the operation.
func TestTheKernelNamesInterfaces(t *testing.T) {
	for _, test := range []struct {
		of   event.Namespace
		want string
	}{{
		event.Namespace{Key: "77", Label: "4026531840"},
		"warm-1",
	}, {event.Namespace{Key: "4026531840", Label: "4026531840"}, ""}} {
		s := looked(t).at(0, &event.Agent{Process: "a", Name: "agentd"}).
			at(1, &event.Link{Process: "a", NetNS: test.of, Index: 38, Name: "warm-1"}).
			plugin(2, "b", "DEL", "net").calls(3, "b", "s1")
		s.at(9, &event.Request{
			Process: "a", Start: 4 * ms, Name: "RTM_DELLINK", Object: event.ObjectLink,
			Verb: event.VerbDelete, NetNS: test.of, Interface: event.Interface{Index: 38},
		})
		s.exit(50, "b").tick(30000).end()
		for _, r := range model.Each[*model.Request](s.closed[0].Calls[0].Runs[0].Facts[0].What.(*model.Connection).
			Work.Own.Facts) {
			harness.Equal(t, r.On, test.want, "the interface in", test.of)
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	s := looked(t).plugin(0, "b", "ADD", "bridge").
		ask(1, 3, "b", "RTM_NEWLINK", times(3)).ask(1, 3, "b", "RTM_NEWADDR"). // one system call
		ask(5, 5, "b", "RTM_GETLINK").ask(6, 7, "b", "RTM_GETLINK").exit(50, "b").tick(2000)
	in := s.inside("bridge")
	if in.Tallies[model.FactChange] != (model.Tally{Count: 4, Time: 2 * ms}) ||
		in.Tallies[model.FactQuery] != (model.Tally{Count: 2, Time: 1 * ms}) {
		t.Errorf("changes %v, queries %v", in.Tallies[model.FactChange], in.Tallies[model.FactQuery])
	}
}

// Sums of short queries are added to reported ones, for the image that ends.
func TestQuestionsThatAreNotToldOneByOneAreCounted(t *testing.T) {
	s := looked(t).plugin(0, "b", "ADD", "bridge").ask(1, 3, "b", "RTM_GETLINK")
	s.at(50, &event.Questions{Process: "b", Count: 40, Took: 5 * ms}).exit(50, "b").tick(2000)
	if in := s.inside("bridge"); in.Tallies[model.FactQuery] != (model.Tally{Count: 41, Time: 7 * ms}) {
		t.Errorf("queries %v", in.Tallies[model.FactQuery])
	}
}

// Facts take no places of images; exceeded limits are named.
func TestTheInsideIsBounded(t *testing.T) {
	s := looked(t).plugin(0, "b", "ADD", "bridge")
	for range 100 {
		s.ask(1, 1, "b", "RTM_NEWLINK").wait(2, 9, "b", event.WaitCall, "read").
			at(9, &event.Connect{Process: "b", Network: "unix", Address: "/run/x"}).
			at(9, &event.Setting{Process: "b", Key: "net/ipv4/ip_forward"})
	}
	for i := range 100 {
		s.command(10, fmt.Sprint("i", i), "b", "iptables").exit(10, fmt.Sprint("i", i))
	}
	s.at(11, &event.Cut{Process: "b", What: "requests", Count: 5}).
		at(11, &event.Cut{Process: "b", What: "bytes", Count: 7}).
		at(11, &event.Cut{Process: "b", What: "anything", Count: 1}).exit(50, "b").tick(2000)
	op := s.closed[0]
	harness.Equal(t, 1+len(op.Calls[0].Runs[0].Children), 32, "images")
	got := fmt.Sprint(op.Calls[0].Cut, op.Partial)
	want := "map[bytes:7 connections:96 other:1 requests:101 sysctls:96 waits:96] " +
		"[more connections than the limit more programs than the limit more requests of one process than are read more requests than the limit more sysctls than the limit more waits than the limit]"
	harness.Equal(t, got, want)
}
