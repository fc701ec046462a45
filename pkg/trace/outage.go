package trace

import (
	"go.opentelemetry.io/otel/attribute"
	oteltrace "go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// Outage returns one span, a trace of its own, for a time in which the node's network was
// not ready, with what the runtime said and what the CNI folder held.
func (b *Builder) Outage(o timeline.Outage) Trace {
	w := &writer{
		Builder: b, op: &timeline.Operation{Mono: o.Mono, Wall: o.Wall},
		trace: Trace{IDs: map[*timeline.Call]oteltrace.TraceID{}},
	}
	b.ids.derive(w.trace.ID[:], o.Start, b.ids.Seed, "outage")
	s := w.span(at{trace: w.trace.ID}, b.ids.span(w.trace.ID, "outage", o.Start), "node network not ready", o.Start, o.End, attr.KindOutage)
	for _, list := range []struct {
		event string
		key   func(string) attribute.KeyValue
		said  []timeline.Said
	}{{"runtime", attr.Reason, o.Reasons}, {"CNI folder", attr.Networks, o.Folder}} {
		for n, said := range list.said {
			s.Events = append(s.Events, &tracepb.Span_Event{
				Name: list.event, TimeUnixNano: w.wall(said.At), Attributes: keyValues([]attribute.KeyValue{list.key(said.Text)}),
			})
			if n == len(list.said)-1 {
				s.Attributes = append(s.Attributes, keyValue(list.key(said.Text)))
			}
		}
	}
	s.Attributes = append(s.Attributes, keyValue(attr.FolderChanges(max(0, len(o.Folder)-1))))
	w.finish(o.Runtime)
	return w.trace
}
