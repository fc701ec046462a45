package pipeline

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
)

func TestTheFirstConnectionAfterTheSetupWasSent(t *testing.T) {
	const ms = int64(time.Millisecond)
	for name, test := range map[string]struct {
		ratio float64
		at    int64 // of the connection, in ms
		marks int
	}{
		"kept":                          {1, 9000, 1},
		"not kept":                      {0, 9000, 0},
		"too late":                      {1, 70_000, 0},
		"before it was sent, in a span": {1, 60, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := within(0, judge.Options{Sampling: judge.Sampling{Ratio: test.ratio}})
			var over []*Judged
			var marks []Result
			at := func(at int64, body event.Body) {
				for _, r := range p.Apply(event.Event{Time: at * ms, Body: body}) {
					if judged, is := r.(*Judged); is {
						over = append(over, judged)
					} else if _, is := r.(*Awaited); !is {
						marks = append(marks, r)
					}
				}
			}
			pod := event.Namespace{Key: "pod"}
			connected := func() { at(test.at, &event.FirstConnection{NetNS: pod, Remote: "10.22.0.1:53"}) }
			at(0, bridge("b", "ADD", "c1"))
			at(1, &event.Enter{Process: "b", NetNS: pod})
			at(50, &event.Exit{Process: "b"})
			if test.at < 2000 {
				connected()
			}
			at(2000, &event.Tick{})
			if test.at > 2000 {
				connected()
			}
			if len(over) != 1 || len(marks) != test.marks {
				t.Fatalf("%d operations and %d marks", len(over), len(marks))
			}
			if test.marks == 0 {
				return
			}
			mark, call := marks[0].Drawn().Read().ScopeSpans[0].Spans, over[0].IDs[over[0].Operation.Calls[0]]
			if len(mark) != 1 || string(mark[0].TraceId) != string(call[:]) {
				t.Errorf("the mark: %v", mark)
			}
		})
	}
}

// A late connection waits for a look. What an earlier look found stays, although it is gone by then.
func TestALateFirstConnection(t *testing.T) {
	const s = int64(time.Second)
	off := event.Obstacle{Kind: event.ObstacleSwitch, Name: "net.ipv4.ip_forward"}
	look := func(at int64, connected bool, syns uint64, all ...event.Obstacle) event.Event {
		return event.Event{Time: at * s, Body: &event.Look{ContainerID: "c1", Connected: connected, Tries: &event.Tries{SYNs: syns}, Obstacles: all}}
	}
	another, elsewhere := look(6, true, 9), look(6, true, 9)
	another.Body.(*event.Look).ContainerID = "c2"
	elsewhere.Body.(*event.Look).NetNS.Key = "another"
	lost := look(6, false, 3)
	lost.Body.(*event.Look).Drops = []event.Drop{{Reason: "NETFILTER_DROP", Place: "nft_do_chain", Peer: "10.96.0.10:443", Count: 3}}
	here := look(10, true, 4)
	here.Body.(*event.Look).NetNS.Key = "pod"
	for name, test := range map[string]struct {
		late   time.Duration
		before []event.Event
		then   []event.Event
		says   string
		after  int // events
	}{
		"in time":                  {60 * time.Second, nil, nil, "", 0},
		"looked at":                {5 * time.Second, nil, []event.Event{another, look(10, true, 4)}, "the first connection came 9s after the ADD: the kernel repeated a SYN 4 times without an answer: a policy", 2},
		"looked at elsewhere":      {5 * time.Second, nil, []event.Event{elsewhere, here}, "the first connection came 9s after the ADD: the kernel repeated a SYN 4 times without an answer: a policy", 2},
		"looked at before":         {5 * time.Second, []event.Event{look(5, false, 2, off), look(6, false, 3)}, []event.Event{look(10, true, 4)}, "the first connection came 9s after the ADD: net.ipv4.ip_forward is 0; the kernel", 1},
		"drops were seen before":   {5 * time.Second, []event.Event{lost}, []event.Event{look(10, true, 4)}, "the first connection came 9s after the ADD: nftables dropped 3 packets to 10.96.0.10:443 on the node", 1},
		"no look comes":            {5 * time.Second, nil, []event.Event{{Time: 12 * s, Body: &event.Tick{}}, {Time: 15 * s, Body: &event.Tick{}}}, "", 2},
		"no look until it is over": {5 * time.Second, nil, nil, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := within(test.late, judge.Options{Sampling: judge.Sampling{Ratio: 1}})
			var found []*Connected
			asked := 0
			take := func(r Result) {
				switch r := r.(type) {
				case *Connected:
					found = append(found, r)
				case *Awaited:
					asked++
				}
			}
			pod := event.Namespace{Key: "pod"}
			for _, e := range []event.Event{
				{Body: bridge("b", "ADD", "c1")},
				{Time: 1, Body: &event.Enter{Process: "b", NetNS: pod}},
				{Time: 2, Body: &event.Exit{Process: "b"}},
				{Time: 4 * s, Body: &event.Tick{}},
			} {
				p.Each(e, take)
			}
			for _, e := range append(test.before, event.Event{Time: 9*s + 2, Body: &event.FirstConnection{NetNS: pod}}) {
				p.Each(e, take)
			}
			events := 0
			for _, e := range test.then {
				if len(found) == 0 {
					events++
				}
				p.Each(e, take)
			}
			if len(found) == 0 {
				events++
				p.FlushEach(take)
			}
			if len(found) != 1 || events != test.after || asked != 1+min(1, test.after) || found[0].Late != (test.after > 0) {
				t.Fatalf("after %d events, %d asked: %+v", events, asked, found)
			}
			says := ""
			if found[0].Verdict != nil {
				says = found[0].Verdict.Says
			}
			if !strings.HasPrefix(says, test.says) || test.says == "" && says != "" {
				t.Errorf("it says %q", says)
			}
		})
	}
}

// A connection that never comes has a verdict if it is known what dropped its packets: after a minute, or when the pod
// is deleted, or when cniscope ends.
func TestAFirstConnectionThatNeverComes(t *testing.T) {
	const s = int64(time.Second)
	plugin := func(at int64, process event.Process, command string) []event.Event {
		return []event.Event{
			{Time: at, Body: bridge(process, command, "c1")},
			{Time: at + 1, Body: &event.Enter{Process: process, NetNS: event.Namespace{Key: "pod"}}},
			{Time: at + 2, Body: &event.Exit{Process: process}},
			{Time: at + 4*s, Body: &event.Tick{}},
		}
	}
	look := func(l event.Look) event.Event {
		l.ContainerID = "c1"
		return event.Event{Time: 12 * s, Body: &l}
	}
	drops := look(event.Look{Drops: []event.Drop{{Reason: "NETFILTER_DROP", Place: "nft_do_chain", Peer: "10.96.0.10:443", Count: 3}}})
	freed := look(event.Look{Drops: []event.Drop{{Reason: "SOCKET_CLOSE", Place: "tcp_v4_destroy_sock", Count: 3}}})
	gone := look(event.Look{Obstacles: []event.Obstacle{event.Gone("route 10.22.0.5/32")}})
	chain := &event.Chain{Backend: "nftables", Rules: 7}
	perhaps := look(event.Look{Tries: &event.Tries{Asked: 1}, Obstacles: []event.Obstacle{{Kind: event.ObstaclePolicy, Chain: chain}}})
	while := gone
	while.Time = 21 * s
	early := drops
	early.Time = 4 * s
	minute := []event.Event{{Time: 63 * s, Body: &event.Tick{}}}
	for name, test := range map[string]struct {
		look event.Event
		then []event.Event
		says string
	}{
		"drops":                              {drops, minute, "no connection came within 1m0s of the ADD: nftables dropped 3 packets"},
		"what the ADD set is gone":           {gone, minute, "no connection came within 1m0s of the ADD: route 10.22.0.5/32, which the pod's ADD set, is gone"},
		"the DEL deletes what a look finds":  {look(event.Look{}), slices.Insert(plugin(20*s, "d", "DEL"), 3, while), ""},
		"the pod is deleted":                 {drops, plugin(20*s, "d", "DEL"), "no connection came within 20s"},
		"the pod is deleted when it is late": {early, plugin(5*s+1, "d", "DEL"), "no connection came within 5s"},
		"the pod is deleted before it is":    {early, plugin(5*s, "d", "DEL"), ""},
		"cniscope ends":                      {drops, []event.Event{{Time: 30 * s, Body: &event.Tick{}}}, "no connection came within 30s"},
		"packets of connections":             {freed, minute, ""},
		"a policy that may let pass":         {perhaps, minute, ""},
		"nothing":                            {look(event.Look{Tries: &event.Tries{SYNs: 3}}), minute, ""},
		"it is connected":                    {drops, []event.Event{{Time: 15 * s, Body: &event.FirstConnection{NetNS: event.Namespace{Key: "pod"}}}}, "the first connection came 15s after"},
	} {
		t.Run(name, func(t *testing.T) {
			p := within(5*time.Second, judge.Options{Sampling: judge.Sampling{Ratio: 1}})
			says := ""
			take := func(r Result) {
				if c, is := r.(*Connected); is {
					if says += c.Verdict.Says; !strings.Contains(c.Drawn().Read().String(), c.Verdict.Says) {
						t.Errorf("not in its span: %s", c.Drawn().Read())
					}
				}
			}
			for _, e := range append(append(plugin(0, "b", "ADD"), test.look), test.then...) {
				p.Each(e, take)
			}
			p.FlushEach(take)
			if !strings.HasPrefix(says, test.says) || test.says == "" && says != "" {
				t.Errorf("it says %q", says)
			}
		})
	}
}
