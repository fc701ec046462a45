package pipeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
)

func small() *Pipeline {
	return New(
		timeline.Options{Settle: 50, MaxHold: 500, Hung: 100, Wait: 100, Processes: 16, Operations: 4, Images: 32, Facts: 16, MinSpan: 3},
		judge.Options{
			Thresholds: judge.Thresholds{Command: 10, Call: 20},
			Sampling:   judge.Sampling{Ratio: 1, Keep: []judge.Reason{judge.Slow, judge.Failed, judge.Partial}},
		},
		trace.NewBuilder(trace.IDs{Seed: "boot"}, nil, "test"),
	)
}

// script turns bytes into events, four bytes each: what, who, by whom, when. Events come
// in any order, of processes that are there or not, forwards and backwards in time.
func script(data []byte) (events []event.Event) {
	var now int64
	for ; len(data) >= 4; data = data[4:] {
		now += int64(int8(data[3]))
		who, by := event.Process(fmt.Sprint(data[1]%12)), event.Process(fmt.Sprint(data[2]%12))
		call := &event.Call{
			Command:     []string{"ADD", "DEL", "STATUS"}[data[2]%3],
			ContainerID: fmt.Sprint(data[1] % 3), IfName: fmt.Sprint("eth", data[2]%2),
		}
		bodies := []event.Body{
			&event.Exec{Process: who, Parent: by, Root: true, InPath: true, Call: call, File: "/b/" + string(who), Stdin: string(by), NetNS: event.Namespace{Key: "n0"}},
			&event.Exec{Process: who, Parent: by, InPath: data[3]%2 == 0, Call: call, File: "/b/x", Name: "x", Stdin: string(who)},
			&event.Exec{Process: who, Parent: by, File: "/s/x", Name: "x", Used: event.Usage{CPU: now}},
			&event.Fork{Process: who, Parent: by},
			&event.Exit{Process: who, Code: uint32(data[2]), Used: event.Usage{CPU: now * 2}},
			&event.Exit{Process: who, Unseen: true},
			&event.Sandbox{Phase: event.SandboxRunning, ID: fmt.Sprint(data[1] % 3)},
			&event.Sandbox{Phase: event.SandboxRemoved, ID: fmt.Sprint(data[1] % 9)},
			&event.Lost{Source: "probe", Reason: "ring full", Count: 1, Process: who},
			&event.Tick{},
			&event.Networks{Networks: []event.Network{{Name: "n", Plugins: []event.Plugin{{Type: string(who)}, {Type: string(by)}}}}},
			&event.Clock{Wall: now},
			&event.Above{SandboxID: fmt.Sprint(data[1] % 3), Start: now - int64(data[2]), End: now, Trace: event.TraceContext{
				Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
			}},
		}
		bodies = append(bodies, insides(now, who, by, data[2], data[3])...)
		events = append(events, event.Event{Time: now, Body: bodies[int(data[0])%len(bodies)]})
	}
	return events
}

// Whatever comes, in whatever order: no crash, no unbounded memory, no negative time, and
// the parts of a call sum to it.
func FuzzPipeline(f *testing.F) {
	f.Add([]byte("\x00\x01\x0b\x00\x03\x02\x01\x01\x02\x02\x01\x05\x04\x02\x00\x09\x04\x01\x01\x09\x09\x00\x00\x7f"))
	f.Add([]byte("\x00\x01\x0b\x7f\x00\x02\x0b\xff\x08\x00\x00\x01\x05\x01\x00\x01\x06\x01\x01\x01\x09\x00\x00\x01"))
	f.Add([]byte("\x00\x01\x0b\x00\x15\x01\x00\x01\x10\x01\x01\x08\x0d\x01\x05\x0c\x1b\x00\x00\x01\x09\x00\x00\x7f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := small()
		var results []Result
		for _, e := range script(data) {
			results = append(results, p.Apply(e)...)
			if p.Open() > 4 {
				t.Fatalf("%d operations are open", p.Open())
			}
		}
		results = append(results, p.Flush()...)
		if p.Open() != 0 {
			t.Fatalf("%d operations are open after the end", p.Open())
		}
		for _, r := range results {
			sound(t, r)
		}
	})
}

func sound(t *testing.T, r Result) {
	if !r.Over() {
		if len(r.Trace.Spans.ScopeSpans[0].Spans) != 1 {
			t.Error("a mark is one span")
		}
		return
	}
	for _, call := range r.Operation.Calls {
		var sum time.Duration
		c := r.Judgement.Calls[call]
		for _, part := range c.Parts {
			if part.Time <= 0 {
				t.Errorf("a part of %s", part.Time)
			}
			sum += part.Time
		}
		why := c.Slow > 0 || c.Failure != "" || call.Hung
		if v := c.Verdict; v != nil && (!why || v.Cause == "" || v.Says == "") || v == nil && why && c.Took > 0 {
			t.Errorf("of a call of %s the verdict is %+v", c.Took, v)
		}
		if c.Took < 0 || len(c.Parts) > 0 && sum != c.Took {
			t.Errorf("parts sum to %s of %s", sum, c.Took)
		}
		for _, run := range call.Runs {
			run.Walk(func(im *timeline.Image) {
				if im.End < im.Start || im.CPU < 0 {
					t.Errorf("an image from %d to %d, %d ns on CPU", im.Start, im.End, im.CPU)
				}
				insideSound(t, im)
			})
		}
	}
	if r.Trace.Spans == nil {
		return
	}
	for _, s := range r.Trace.Spans.ScopeSpans[0].Spans {
		if s.EndTimeUnixNano < s.StartTimeUnixNano && r.Operation.Wall > 1<<20 {
			t.Errorf("%s ends before it starts", s.Name)
		}
	}
}
