package trace

import (
	"cmp"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/semconv/v1.43.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
)

// Hung returns a span for a call in progress.
func (b *Builder) Hung(f model.Flight, now int64) Trace {
	w, where := b.mark(f)
	s := w.span(where, b.ids.hung(where.trace, f.First, f.Start), "CNI "+f.Command+" hung", f.Start, now, attr.KindHung)
	add(s, nonZero(
		attr.CNICommand(f.Command),
		attr.CNIIfName(f.IfName),
		attr.CNIPlugin(f.Plugin),
		semconv.ProcessCommand(f.Name),
	)...)
	add(s, semconv.ProcessPID(int(f.PID)), attr.Hung(true), attr.AgeMS(time.Duration(now-f.Start)))
	return w.finish(f.Runtime)
}

// Connected returns a span from an exported ADD's end to the first connection, below the ADD's.
func (b *Builder) Connected(c model.Connected, v *judge.Verdict) Trace {
	w, where := b.mark(c.Flight)
	where.parent, where.remote = b.ids.call(where.trace, c.First, c.Start), false
	id := b.ids.span(where.trace, "first connection "+string(c.First), c.End)
	s := w.span(where, id, "first connection", c.End, c.At, attr.KindFirstConnection)
	add(s, nonZero(attr.CNICommand(c.Command), attr.CNIIfName(c.IfName))...)
	if c.Never {
		fail(s, v.Says, string(v.Cause))
	} else {
		add(s, after(c.End, c.At))
		add(s, ends(c.Local, c.Remote)...)
	}
	add(s, aboutVerdict(v)...)
	return w.finish(c.Runtime)
}

// Start returns spans beside an exported ADD's.
func (b *Builder) Start(s model.Start, j judge.Started) Trace {
	w, where := b.mark(s.Flight)
	id := b.ids.span(where.trace, "start "+string(s.First), s.Network)
	outer := w.span(where, id, "sandbox start", s.Network, s.To, attr.KindStart)
	add(outer, attr.TimeBetweenRunsMS(j.Runtime), attr.TimeUnexplainedMS(j.Unexplained))
	add(outer, aboutVerdict(j.Verdict)...)
	if j.Slow > 0 {
		w.slow(outer, j.Slow, s.To)
	}
	if j.Failed != "" {
		fail(outer, j.Failed, string(j.Verdict.Cause))
	}
	for _, p := range j.Before {
		w.span(where, b.ids.span(where.trace, "part "+p.Name, p.From), p.Name, p.From, p.To, attr.KindStep)
	}
	for _, p := range j.Parts {
		id := b.ids.span(where.trace, "part "+p.Name, p.From)
		if p.Step == nil {
			w.span(where.under(outer), id, b.names.Limit(p.Name, "NRI"), p.From, p.To, attr.KindStep)
			continue
		}
		inner := w.step(where.under(outer), p.Name, p.Step, p.To)
		for _, below := range p.Below {
			w.step(where.under(inner), below.Name, below, below.End)
		}
	}
	return w.finish(s.Runtime)
}

func (w *writer) step(where at, name string, s *model.Step, end int64) *tracepb.Span {
	id := w.ids.span(where.trace, "step "+string(s.Process), s.Started)
	span := w.span(where, id, w.names.Limit(name, "step"), s.Started, end, attr.KindStep)
	add(span, attr.Step(string(s.Kind)), semconv.ProcessCommand(s.Name))
	add(span, semconv.ProcessPID(int(s.PID)), semconv.ProcessParentPID(int(s.ParentPID)))
	add(span, semconv.ProcessExitCode(int(s.Code)))
	add(span, nonZero(
		attr.Signal(s.Signal), attr.CPUMS(time.Duration(s.Used.CPU)), attr.RunDelayMS(time.Duration(s.Used.RunDelay)),
	)...)
	if s.Failed() {
		fail(span, judge.Ended(name, s), cmp.Or(s.Signal, strconv.Itoa(int(s.Code))))
	}
	return span
}

// After returns spans of an agent's work after an ADD, below the ADD's.
func (b *Builder) After(a model.After, j judge.Afterwards) Trace {
	w, where := b.mark(a.Flight)
	w.j = j.Judgement
	where.parent, where.remote = b.ids.call(where.trace, a.First, a.Start), false
	id := b.ids.span(where.trace, "work after "+a.Command+" "+string(a.Image.Process), a.Image.Start)
	s := w.span(where, id, "work after "+a.Command, a.End, a.Image.End, attr.KindWorkAfter)
	add(s, nonZero(attr.CNICommand(a.Command), attr.CNIIfName(a.IfName))...)
	add(s, aboutAttribution(a.Image.Attribution)...)
	if a.Image.By != nil {
		add(s, aboutActor(a.Image.By)...)
	}
	if j.Says != "" {
		add(s, attr.Verdict(j.Says), attr.Cause(string(j.Cause)))
	}
	w.image(where.under(s), a.Image, a.Run(), false)
	return w.finish(a.Runtime)
}

func (b *Builder) mark(f model.Flight) (*writer, at) {
	w := b.writer(&model.Operation{Mono: f.Mono, Wall: f.Wall, Pod: f.Pod, ContainerID: f.ContainerID}, nil)
	where, ok := recorded(f.Trace)
	if !ok {
		where = at{trace: b.ids.trace(f.Operation), parent: b.ids.operation(f.Operation)}
	}
	w.trace.ID = where.trace
	return w, where
}

// Outage returns a trace of a time without a ready node network.
func (b *Builder) Outage(o model.Outage) Trace {
	w := b.writer(&model.Operation{Mono: o.Mono, Wall: o.Wall}, nil)
	s := w.single("outage", o.Start, "node network not ready", o.Start, o.End, attr.KindOutage)
	for _, list := range []struct {
		event string
		key   func(string) attribute.KeyValue
		said  []model.Said
	}{{"runtime", attr.Reason, o.Reasons}, {"CNI folder", attr.Networks, o.Folder}} {
		for n, said := range list.said {
			w.happened(s, list.event, said.At, list.key(said.Text))
			if n == len(list.said)-1 {
				add(s, list.key(said.Text))
			}
		}
	}
	add(s, attr.FolderChanges(max(0, len(o.Folder)-1)))
	for _, l := range o.Lacks {
		w.happened(s, "missing", l.At, attr.Missing(l.Text))
	}
	if a := judge.Outage(o); a.What != "" {
		add(s, attr.Verdict(a.Says), attr.Cause(string(a.What)))
	}
	if o.Overdue {
		add(s, attr.Slow(true))
	}
	return w.finish(o.Runtime)
}

// BringUp returns a trace of a node's start: stages that follow one another.
func (b *Builder) BringUp(up model.BringUp, j judge.Brought) Trace {
	first := up.First.Flight
	w := b.writer(&model.Operation{
		Mono: first.Mono, Wall: first.Wall, Pod: first.Pod, ContainerID: first.ContainerID,
	}, nil)
	s := w.single("bring-up", up.Since, "node bring-up", up.From, up.First.To, attr.KindBringUp)
	add(s, attr.Verdict(j.Says), attr.Cause(j.Cause))
	for _, p := range j.Stages {
		id := b.ids.span(w.trace.ID, p.Name, p.From)
		w.span(at{trace: w.trace.ID}.under(s), id, p.Name, p.From, p.To, attr.KindStep)
	}
	return w.finish(first.Runtime)
}

// Test returns a trace for a backend's test. Its kind "test" hides it from searches for calls.
func Test(n Node, ids IDs, at time.Time) *tracepb.ResourceSpans {
	w := NewBuilder(ids, n.Resource(), n.Version).writer(&model.Operation{Wall: at.UnixNano()}, nil)
	w.single("test", at.UnixNano(), "cniscope doctor", 0, 0, attr.KindTest)
	return w.finish(event.Runtime{}).Spans
}

func (w *writer) single(what string, when int64, name string, start, end int64, kind string) *tracepb.Span {
	w.ids.derive(w.trace.ID[:], when, w.ids.Seed, what)
	return w.span(at{trace: w.trace.ID}, w.ids.span(w.trace.ID, what, when), name, start, end, kind)
}
