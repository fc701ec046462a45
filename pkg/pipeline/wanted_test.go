package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/test/harness"
)

// A failed call whose known failure names a look waits for it, but not long.
func TestAFailedCallWaitsForALook(t *testing.T) {
	const s, ms = int64(time.Second), int64(time.Millisecond)
	look := func(id string, f event.Found) event.Event {
		f.Name = "cni0"
		return event.Event{Time: 2*s + 100*ms, Body: &event.Look{ContainerID: id, Found: &f}}
	}
	tick := func(at int64) event.Event { return event.Event{Time: at, Body: &event.Tick{}} }
	empty := event.Found{Kind: event.FoundBridge}
	for name, test := range map[string]struct {
		then  []event.Event
		after int // events
		says  string
	}{
		"it comes":              {[]event.Event{tick(2*s + 50*ms), look("c1", empty), tick(3 * s)}, 2, "; cni0 has no address and no port"},
		"that of another comes": {[]event.Event{look("c2", empty), tick(2*s + 500*ms), tick(2*s + 501*ms), tick(4 * s)}, 3, `10.244.2.1/24"`},
		"one of another kind":   {[]event.Event{look("c1", event.Found{Kind: event.FoundPorts}), tick(3 * s), tick(4 * s)}, 2, `10.244.2.1/24"`},
		"the end comes":         {nil, 0, `10.244.2.1/24"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := within(0, judge.Options{Sampling: judge.Sampling{Ratio: 1}})
			var results []Result
			take := func(r Result) { results = append(results, r) }
			for _, e := range append(fails("b", "c1"), tick(2*s)) {
				p.Each(e, take)
			}
			if w, is := results[0].(*Wanted); len(results) != 1 || !is || w.ContainerID != "c1" || w.Want != (event.Want{Kind: event.FoundBridge, Name: "cni0"}) || p.Open() != 1 {
				t.Fatalf("%d open, %+v", p.Open(), results)
			}
			after := 0
			for _, e := range test.then {
				if p.Open() > 0 {
					after++
				}
				p.Each(e, take)
			}
			p.FlushEach(take)
			harness.Equal(t, after, test.after, "events")
			judged := results[len(results)-1].(*Judged)
			if says := judged.Judgement.Calls[judged.Operation.Calls[0]].Verdict.Says; len(results) != 2 || !strings.HasSuffix(says, test.says) {
				t.Errorf("%d results: %s", len(results), says)
			}
		})
	}
}

func fails(process event.Process, container string) []event.Event {
	const says = `failed to set bridge addr: "cni0" already has an IP address different from 10.244.2.1/24`
	return []event.Event{
		{Body: bridge(process, "ADD", container)},
		{Time: 1, Body: &event.Result{Process: process, Code: 999, Message: says}},
		{Time: 2, Body: &event.Exit{Process: process, Code: 1}},
	}
}

func TestAsManyFailedCallsWaitAsOperationsMayBeOpen(t *testing.T) {
	p, wanted := small(), 0
	for i := range 9 {
		tick := event.Event{Time: int64(time.Second), Body: &event.Tick{}}
		for _, e := range append(fails(event.Process(fmt.Sprint(i)), fmt.Sprint("c", i)), tick) {
			for _, r := range p.Apply(e) {
				if _, is := r.(*Wanted); is {
					wanted++
				}
			}
		}
	}
	harness.Equal(t, wanted, 4, "looks of 9 failed calls, with 4 operations")
}
