package node

import (
	"fmt"
	"log/slog"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/firstconn"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/metrics"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/text"
)

type lines struct {
	log  *slog.Logger
	node string
}

func (lines) Wants(body event.Body) bool {
	switch body.(type) {
	case *event.Degraded, *event.Readiness, *event.Lost:
		return true
	}
	return false
}

func (l lines) Result(r pipeline.Result) {
	switch r := r.(type) {
	case *pipeline.Hung:
		l.hung(r)
	case *pipeline.After:
		l.after(r)
	case *pipeline.Started:
		l.started(r)
	case *pipeline.Outage:
		l.outage(r)
	case *pipeline.BringUp:
		l.broughtUp(r)
	case *pipeline.Judged:
		l.calls(r)
	}
}

var messages = map[string]string{
	"failed": "CNI call failed", "slow": "CNI call was slow", "slow_command": "CNI call ran a slow command",
	"slow_agent": "CNI call waited for a slow agent", "slow_lock": "CNI call waited long for a lock",
}

func (l lines) calls(r *pipeline.Judged) {
	for _, call := range r.Operation.Calls {
		c := r.Judgement.Calls[call]
		message := messages[metrics.OutcomeOf(c)]
		if message == "" || r.Judgement.Reasons[0] == judge.NoSandbox { // asked again in 5 s
			continue
		}
		fields := []any{
			"pod", r.Operation.Pod.Namespace + "/" + r.Operation.Pod.Name,
			"node", l.node,
			"call", call.Command + " " + call.IfName,
			"took", text.Round(c.Took),
		}
		if c.Failure != "" {
			fields = append(fields, "failure", c.Failure)
		}
		if v := c.Verdict; v != nil {
			fields = append(fields, "verdict", v.Says, "cause", v.Cause)
			if v.Remedy != "" {
				fields = append(fields, "remedy", v.Remedy)
			}
		} else if len(c.Parts) > 0 {
			fields = append(fields, "most", fmt.Sprintf("%s: %s", text.Round(c.Parts[0].Time), c.Parts[0]))
		}
		if r.Judgement.Keep {
			fields = append(fields, traced(r.IDs[call]))
		}
		l.log.Warn(message, fields...)
	}
}

func (l lines) hung(f *pipeline.Hung) {
	fields := []any{
		"pod", f.Pod.Namespace + "/" + f.Pod.Name,
		"node", l.node,
		"call", f.Command + " " + f.IfName,
		"for", text.Round(time.Duration(f.At - f.Start)),
		"plugin", f.Plugin,
		"runs", fmt.Sprintf("%s (pid %d) for %s", f.Name, f.PID, text.Round(time.Duration(f.At-f.Since))),
	}
	if f.Asks != "" {
		fields = append(fields, "asks", f.Asks, "agent", f.Agent)
	}
	if f.Polls != "" {
		fields = append(fields, "polls", f.Polls)
	}
	l.log.Warn("CNI call hangs", append(fields, traced(f.ID))...)
}

func (l lines) after(a *pipeline.After) {
	if a.Says == "" {
		return
	}
	l.log.Warn("work behind an ADD", "pod", a.Pod.Namespace+"/"+a.Pod.Name, "node", l.node, "verdict", a.Says,
		traced(a.ID))
}

func (l lines) started(s *pipeline.Started) {
	message := map[string]string{
		model.RunPodSandbox: "sandbox started slowly", model.StopPodSandbox: "sandbox stopped slowly",
		model.RemovePodSandbox: "sandbox was removed slowly",
	}[s.Request]
	if s.Failed != "" {
		message = "sandbox start failed"
	}
	if v := s.Verdict; v != nil {
		l.log.Warn(message, "pod", s.Pod.Namespace+"/"+s.Pod.Name, "node", l.node, "took", text.Round(s.Took),
			"verdict", v.Says, "cause", v.Cause, "remedy", v.Remedy, traced(s.ID))
	}
}

func (l lines) outage(o *pipeline.Outage) {
	fields := []any{
		"node", l.node,
		"for", text.Round(time.Duration(o.End - o.Start)),
		"reason", o.Reasons[len(o.Reasons)-1].Text,
		"cni_folder", o.Folder[len(o.Folder)-1].Text,
	}
	if a := judge.Outage(o.Outage); a.What != "" {
		fields = append(fields, "verdict", a.Says, "cause", a.What)
	}
	l.log.Warn("the node's network was not ready", append(fields, traced(o.ID))...)
}

func (l lines) broughtUp(b *pipeline.BringUp) {
	l.log.Info("the node's first pod runs",
		"node", l.node, "after", text.Round(b.Took), "verdict", b.Says, "cause", b.Cause, traced(b.ID))
}

func (l lines) Event(e event.Event) {
	switch b := e.Body.(type) {
	case *event.Degraded:
		if b.Restored {
			l.log.Info("feature available again", "feature", b.Feature)
			return
		}
		l.log.Warn("feature unavailable", "feature", b.Feature, "reason", b.Reason)
	case *event.Readiness:
		if b.Overdue {
			l.log.Warn("the node's network is still not ready",
				"reason", b.Reason, "missing", b.Missing, "cause", b.Lacks, "remedy", "cniscope doctor")
		}
	case *event.Lost:
		if b.OfProcesses() {
			return // at every tick; overload logs it
		}
		l.log.Warn("events were lost", "source", b.Source, "reason", b.Reason, "count", b.Count)
	}
}

// traced is empty without a kept trace; handlers omit it.
func traced(id oteltrace.TraceID) slog.Attr {
	if !id.IsValid() {
		return slog.Attr{}
	}
	return slog.String("trace_id", id.String())
}

type latecomers struct {
	log   *slog.Logger
	node  string
	looks *firstconn.Source
}

func (l latecomers) take(result pipeline.Result) {
	switch r := result.(type) {
	case *pipeline.Wanted:
		l.looks.Want(r.ContainerID, r.Want)
	case *pipeline.Awaited:
		l.looks.Await(r.Connected)
	case *pipeline.Connected:
		l.looks.Connected(r.NetNS)
		if r.Late {
			l.tell(r)
		}
	}
}

func (l latecomers) tell(c *pipeline.Connected) {
	fields := []any{
		"pod", c.Pod.Namespace + "/" + c.Pod.Name, "node", l.node, "after", text.Round(time.Duration(c.At - c.End)),
		"local", c.Local, "remote", c.Remote, traced(c.ID),
	}
	if v := c.Verdict; v != nil {
		fields = append(fields, "verdict", v.Says, "cause", v.Cause)
		if v.Remedy != "" {
			fields = append(fields, "remedy", v.Remedy)
		}
	}
	if c.Never {
		l.log.Warn("a pod's first connection did not come", fields...)
		return
	}
	l.log.Warn("a pod's first connection came late", fields...)
}
