package pipeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
)

func small() *Pipeline {
	return New(
		timeline.Options{
			Settle: 50, MaxHold: 500, Hung: 100, Wait: 100, Processes: 16, Operations: 4, Images: 32, Facts: 16,
			MinSpan: 3,
		},
		judge.Options{
			Thresholds: judge.Thresholds{Command: 10, Call: 20},
			Sampling:   judge.Sampling{Ratio: 1, Keep: []judge.Reason{judge.Slow, judge.Failed, judge.Partial}},
		},
		trace.NewBuilder(trace.IDs{Seed: "boot"}, nil, "test"),
	)
}

// within is one whose operations settle in a second. A first connection is late after a time.
func within(late time.Duration, o judge.Options) *Pipeline {
	return New(timeline.Options{
		Settle: time.Second, MaxHold: time.Minute, Late: late, Processes: 16, Operations: 4, Images: 32, Facts: 16,
	}, o, trace.NewBuilder(trace.IDs{}, nil, "test"))
}

// bridge is the start of a plugin.
func bridge(process event.Process, command, container string) *event.Exec {
	return &event.Exec{
		Process: process, Parent: "cd", Root: true, InPath: true, File: "/opt/cni/bin/bridge", Name: "bridge",
		NetNS: event.Namespace{Key: "host"}, Call: &event.Call{Command: command, ContainerID: container, IfName: "eth0"},
	}
}

func TestAHungCallIsReportedWhileItHangs(t *testing.T) {
	p := small()
	var reported []string
	for _, e := range []event.Event{
		{Time: 0, Body: bridge("b", "ADD", "c1")},
		{Time: 90, Body: &event.Tick{}},
		{Time: 110, Body: &event.Tick{}},
		{Time: 120, Body: &event.Tick{}},
		{Time: 200, Body: &event.Exit{Process: "b"}},
	} {
		for _, r := range p.Apply(e) {
			sound(t, r)
			hung, is := r.(*Hung)
			if !is {
				t.Fatalf("at %d: %+v", e.Time, r)
			}
			span := hung.Read().ScopeSpans[0].Spans[0]
			if calls := p.InFlight(); len(calls) != 1 || calls[0].Plugin != "bridge" {
				t.Errorf("at %d in progress: %+v", e.Time, calls)
			}
			reported = append(reported, fmt.Sprintf("at %d: %s of %s, %d to %d", e.Time, span.Name, hung.Plugin,
				span.StartTimeUnixNano, span.EndTimeUnixNano))
		}
	}
	harness.EqualSlices(t, reported, []string{"at 110: CNI ADD hung of bridge, 0 to 110"}, "reported")
	harness.Equal(t, len(p.InFlight()), 0, "calls in progress at the end")
	harness.Equal(t, p.Open(), 1, "operations that may still get a call")
	if rest := p.Flush(); len(rest) != 1 || !rest[0].(*Judged).Operation.Calls[0].Hung {
		t.Errorf("at the end: %+v", rest)
	}
}

// three judges three pods whose ADDs end at the same time.
func three(p *Pipeline, round int) (all []*Judged) {
	for i := range 3 {
		process := event.Process(fmt.Sprint(round, "-", i))
		p.Apply(event.Event{Body: bridge(process, "ADD", string(process))})
		p.Apply(event.Event{Time: 50, Body: &event.Exit{Process: process}})
	}
	for _, r := range p.Flush() {
		all = append(all, r.(*Judged))
	}
	return all
}

func TestOfAReducedOperationTheWholeIsThere(t *testing.T) {
	p := small()
	p.Whole, p.Judge.PerSecond = true, 1
	reduced := 0
	for round := range 7 {
		for _, r := range three(p, round) {
			harness.Equal(t, len(r.Whole.Read().ScopeSpans[0].Spans), 3, "spans of the whole")
			if r.Judgement.Reduced {
				reduced++
				harness.Equal(t, len(r.Read().ScopeSpans[0].Spans), 2, "reduced", r.Operation.ContainerID, "spans")
			}
		}
	}
	harness.Equal(t, reduced, 1, "of 21 are reduced: twenty problems a second stay whole")
}

// Behind an agent that is gone, the ADD of each pod fails, and at once the DEL.
func TestABurstOfFailuresStaysWhole(t *testing.T) {
	p := small()
	p.Judge.PerSecond = 5
	for i := range 60 {
		id, process := fmt.Sprint("pod-", i/2), event.Process(fmt.Sprint(i))
		p.Apply(event.Event{Time: int64(i), Body: bridge(process, []string{"ADD", "DEL"}[i%2], id)})
		p.Apply(event.Event{Time: int64(i) + 1, Body: &event.Exit{Process: process, Code: 1}})
		for _, r := range p.Flush() {
			if j := r.(*Judged); j.Judgement.Reduced || j.Judgement.Problem() == "" {
				t.Errorf("%s of %s: reduced %v, problem %q", j.Operation.Kind, id, j.Judgement.Reduced, j.Judgement.Problem())
			}
		}
	}
}

func TestOrdinaryOperationsDoNotUseUpTheBudgetOfSlowOnes(t *testing.T) {
	p := small()
	p.Whole, p.Judge.PerSecond = true, 1
	for round, want := range []int{2, 0} {
		p.Judge.Call = []time.Duration{time.Hour, 20}[round]
		reduced := 0
		for _, r := range three(p, round) {
			if r.Judgement.Reduced {
				reduced++
			}
			harness.Equal(t, r.Whole.Spans != nil, round == 1, "whole, of a slow one", round)
		}
		harness.Equal(t, reduced, want, "reduced of 3 in round", round)
	}
}

func TestTheSetupOfASlowSandboxStaysWhole(t *testing.T) {
	p := small()
	p.Judge.PerSecond, p.Judge.Call = 1, 30
	for i, id := range []string{"first", "reduced", "slow", "failed"} {
		process := event.Process(id)
		p.Apply(event.Event{Body: bridge(process, "ADD", id)})
		p.Apply(event.Event{Time: 10, Body: &event.Exit{Process: process}})
		if i > 1 {
			code, after := uint32(i-2), int64(85-20*i) // a failure at once, success late
			p.Apply(event.Event{Time: after, Body: &event.Step{SandboxID: id, Kind: event.StepRuntime, Verb: "create", Code: code}})
		}
	}
	for _, r := range append(p.Apply(event.Event{Time: 200, Body: &event.Tick{}}), p.Flush()...) {
		if j, is := r.(*Judged); is {
			harness.Equal(t, j.Judgement.Reduced, j.Operation.ContainerID == "reduced", j.Operation.ContainerID)
		}
	}
}

// For any stream: no crash, bounded memory, no negative time, and the parts of a call add up.
func FuzzPipeline(f *testing.F) {
	for seed := range byte(100) {
		f.Add([]byte{seed})
	}
	f.Fuzz(func(t *testing.T, data []byte) { streamed(t, data) })
}

func streamed(t *testing.T, data []byte) (results []Result) {
	p := small()
	for _, e := range stream(data) {
		results = append(results, p.Apply(e)...)
		if p.timeline.Open() > 4 || len(p.held) > 4 {
			t.Fatalf("%d operations are open, %d wait for a look", p.timeline.Open(), len(p.held))
		}
	}
	results = append(results, p.Flush()...)
	harness.Equal(t, p.Open(), 0, "open operations after the end")
	for _, r := range results {
		sound(t, r)
	}
	return results
}

func sound(t *testing.T, r Result) {
	over, is := r.(*Judged)
	if _, wanted := r.(*Wanted); wanted {
		return
	}
	if !is {
		_, after := r.(*After)
		_, up := r.(*BringUp)
		if s, is := r.(*Started); is && s.Spans == nil {
			return
		} else if n := len(r.Drawn().Read().ScopeSpans[0].Spans); n != 1 && !after && !up && !is {
			t.Errorf("a mark has %d spans", n)
		}
		return
	}
	operationSound(t, over)
}

func operationSound(t *testing.T, r *Judged) {
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
			run.Walk(func(im *model.Image) {
				if im.End < im.Start || im.CPU < 0 {
					t.Errorf("an image from %d to %d, %d ns on CPU", im.Start, im.End, im.CPU)
				}
				insideSound(t, im)
			})
		}
	}
	if r.Spans == nil {
		return
	}
	for _, s := range r.Read().ScopeSpans[0].Spans {
		if s.EndTimeUnixNano < s.StartTimeUnixNano && r.Operation.Wall > 1<<20 {
			t.Errorf("%s ends before it starts", s.Name)
		}
	}
}

func TestAStartIsOpenUntilATickEndsIt(t *testing.T) {
	p := small()
	call := &event.Call{Command: "ADD", ContainerID: "c1", IfName: "eth0", Trace: event.TraceContext{Parent: "00-" + strings.Repeat("ab", 16) + "-" + strings.Repeat("cd", 8) + "-01"}}
	var left []int
	for i, b := range []event.Body{
		&event.Exec{Process: "b", Parent: "cd", Root: true, InPath: true, File: "/b/bridge", Name: "bridge", Call: call},
		&event.Exit{Process: "b"}, &event.Step{SandboxID: "c1", Kind: event.StepRuntime, Verb: "start"},
		&event.Sandbox{ID: "c1", Phase: event.SandboxRunning}, &event.Tick{}, &event.Tick{},
	} {
		p.Apply(event.Event{Time: int64(30 * i), Body: b})
		left = append(left, p.timeline.Open(), p.Open())
	}
	harness.EqualSlices(t, left, []int{1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1}, "operations, and all, that are open")
	over := p.Apply(event.Event{Time: 300, Body: &event.Tick{}})
	harness.Equal(t, p.Open(), 0, "open after the wait for the request")
	if len(over) != 1 || over[0].Drawn().Spans == nil {
		t.Errorf("%d results, want a start and its spans", len(over))
	}
}

func TestTheBringUpOfANode(t *testing.T) {
	const s = int64(time.Second)
	none := &event.Readiness{Reason: "cni plugin not initialized", Lacks: event.LackConfiguration, Missing: "no file in /etc/cni/net.d"}
	ready := &event.Readiness{Ready: true}
	up := func(since, first int64, before ...event.Body) string {
		p := small()
		p.Apply(event.Event{Time: first - s, Body: &event.Registered{PID: 7, Since: since}})
		for i, b := range before {
			p.Apply(event.Event{Time: first + 10*s*int64(i), Body: b})
		}
		at := first + 10*s*int64(len(before))
		call := &event.Call{Command: "ADD", ContainerID: "c1", IfName: "eth0"}
		var said []string
		for i, b := range []event.Body{
			&event.Exec{Process: "b", Parent: "cd", Root: true, InPath: true, File: "/b/bridge", Name: "bridge", Call: call},
			&event.Exit{Process: "b"}, &event.Step{SandboxID: "c1", Kind: event.StepRuntime, Verb: "start"},
			&event.Sandbox{ID: "c1", Phase: event.SandboxRunning, Pod: event.Pod{Namespace: "shop", Name: "web"}},
			&event.Tick{}, &event.Tick{}, &event.Tick{}, &event.Tick{}, &event.Tick{},
		} {
			for _, r := range p.Apply(event.Event{Time: at + s*int64(i), Body: b}) {
				b, ok := r.(*BringUp)
				if !ok {
					continue
				}
				said = append(said, b.Cause+": "+b.Says)
				for _, x := range b.Read().ScopeSpans[0].Spans {
					said = append(said, fmt.Sprintf("%s %d-%d", x.Name, int64(x.StartTimeUnixNano)/s, int64(x.EndTimeUnixNano)/s))
				}
			}
		}
		return strings.Join(said, "; ")
	}
	harness.Equal(t, up(20*s, 25*s, none, none, none, none, ready), "cni_configuration: 40s of 1m18s: no file in /etc/cni/net.d; node bring-up 0-78; "+
		"boot 0-20; runtime start 20-25; wait for CNI configuration 25-65; wait for pod 65-75; first pod 75-78", "from boot")
	harness.Equal(t, up(9000*s, 9001*s, none, ready), "cni_configuration: 10s of 24s: no file in /etc/cni/net.d; node bring-up 9000-9024; "+
		"runtime start 9000-9001; wait for CNI configuration 9001-9011; wait for pod 9011-9021; first pod 9021-9024", "from a later start of the runtime")
	harness.Equal(t, up(20*s, 9001*s, none, ready), "", "an outage long after the start")
	harness.Equal(t, up(20*s, 25*s, ready, none, ready), "", "ready at first")
	harness.Equal(t, up(0, 25*s, none, ready), "", "a runtime that is not seen")
}
