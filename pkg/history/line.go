package history

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/text"
)

// Take stores a finished or hung operation, and a late first connection.
func (h *History) Take(r pipeline.Result) {
	switch r := r.(type) {
	case *pipeline.Hung:
		h.Add(hung(r))
		if r.Spans != nil {
			h.Keep([]string{traceID(r.ID)}, r.Trace)
		}
	case *pipeline.Connected:
		if r.Late {
			h.Add(late(r))
		}
	case *pipeline.Started:
		if r.Verdict != nil {
			h.Add(started(r))
		}
	case *pipeline.Judged:
		if r.Operation.ContainerID == "" {
			return
		}
		h.Add(line(r))
		if r.Whole.Spans != nil {
			h.Keep(traceIDs(r), r.Whole)
		}
	}
}

func line(r *pipeline.Judged) control.Line {
	op := r.Operation
	call := tells(r)
	c := r.Judgement.Calls[call]
	l := control.Line{
		Time:      time.Unix(0, op.Wall+op.End-op.Mono),
		Namespace: op.Pod.Namespace, Pod: op.Pod.Name, PodUID: op.Pod.UID, Sandbox: op.ContainerID,
		Command: call.Command, IfName: call.IfName, Network: call.Network, Plugin: c.Plugin(call),
		Duration: c.Took, Result: control.Ordinary, TraceID: traceID(idOf(r, call)), Error: c.Failure,
	}
	switch r.Judgement.Problem() {
	case judge.Failed:
		l.Result = control.Failed
	case judge.Slow:
		l.Result = control.Slow
	default:
		return l
	}
	if v := c.Verdict; v != nil {
		l.Cause, l.Verdict, l.Own, l.Remedy = string(v.Cause), v.Says, v.Own, v.Remedy
		l.Certain, l.Foreign = v.Certain, v.Own != ""
	} else if len(c.Parts) > 0 {
		most := c.Parts[0]
		l.Verdict = fmt.Sprintf("%s of %s: %s", text.Round(most.Time), text.Round(c.Took), most)
		what := most.What()
		if most.Doubtful() {
			what = "an agent worked, possibly for another pod"
		}
		l.Own = fmt.Sprintf("%s of %s: %s", text.Round(most.Time), text.Round(c.Took), what)
		l.Foreign = true // may name a lock's holder
	}
	return l
}

// tells returns the most relevant call: one that failed, else a slow one, else the longest.
func tells(r *pipeline.Judged) *model.Call {
	return slices.MaxFunc(r.Operation.Calls, func(a, b *model.Call) int {
		x, y := r.Judgement.Calls[a], r.Judgement.Calls[b]
		return cmp.Or(compare(x.Failure != "", y.Failure != ""), compare(x.Slow > 0, y.Slow > 0),
			compare(slow(x), slow(y)), cmp.Compare(x.Took, y.Took))
	})
}

func slow(c *judge.Call) bool { return c.SlowCommands+c.SlowAgents+c.SlowLocks > 0 }

func compare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func idOf(r *pipeline.Judged, call *model.Call) oteltrace.TraceID {
	if id := r.Whole.IDs[call]; id.IsValid() {
		return id
	}
	return r.IDs[call]
}

func traceIDs(r *pipeline.Judged) (all []string) {
	for _, call := range r.Operation.Calls {
		if id := traceID(r.Whole.IDs[call]); id != "" && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

func traceID(id oteltrace.TraceID) string {
	if !id.IsValid() {
		return ""
	}
	return hex.EncodeToString(id[:])
}

func hung(f *pipeline.Hung) control.Line {
	says := fmt.Sprintf("in progress for %s, runs %s (pid %d) for %s",
		text.Round(time.Duration(f.At-f.Start)), f.Name, f.PID, text.Round(time.Duration(f.At-f.Since)))
	if f.Asks != "" {
		says += fmt.Sprintf(", which asks %s at %s for %s",
			cmp.Or(f.Agent, "an agent"), f.Asks, text.Round(time.Duration(f.At-f.Asked)))
	}
	if f.Polls != "" {
		says += ", polls for " + f.Polls
	}
	return control.Line{
		Time:      time.Unix(0, f.Wall+f.At-f.Mono),
		Namespace: f.Pod.Namespace, Pod: f.Pod.Name, PodUID: f.Pod.UID, Sandbox: f.ContainerID,
		Command: f.Command, IfName: f.IfName, Plugin: f.Plugin,
		Duration: time.Duration(f.At - f.Start), Result: control.Hung, Verdict: says, Certain: true,
		TraceID: traceID(f.ID),
	}
}

func late(c *pipeline.Connected) control.Line {
	l := control.Line{
		Time:      time.Unix(0, c.Wall+c.At-c.Mono),
		Namespace: c.Pod.Namespace, Pod: c.Pod.Name, PodUID: c.Pod.UID, Sandbox: c.ContainerID,
		Command: c.Command, IfName: c.IfName, Plugin: c.Plugin,
		Duration: time.Duration(c.At - c.End), Result: control.Late, TraceID: traceID(c.ID),
	}
	if v := c.Verdict; v != nil {
		l.Cause, l.Verdict, l.Remedy, l.Certain = string(v.Cause), v.Says, v.Remedy, v.Certain
	}
	return l
}

func started(s *pipeline.Started) control.Line {
	l := control.Line{
		Time:      time.Unix(0, s.Wall+s.To-s.Mono),
		Namespace: s.Pod.Namespace, Pod: s.Pod.Name, PodUID: s.Pod.UID, Sandbox: s.ContainerID,
		Command: s.Request, Duration: s.Took, Result: control.Slow, TraceID: traceID(s.ID), Error: s.Failed,
		Cause: string(s.Verdict.Cause), Verdict: s.Verdict.Says, Remedy: s.Verdict.Remedy, Certain: true,
	}
	if s.Failed != "" {
		l.Result = control.Failed
	}
	return l
}

// Bounds of texts, in bytes; a name is up to a DNS subdomain (RFC 1123).
const (
	nameBytes = 253
	saidBytes = 512
)
