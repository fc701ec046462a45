package show

import (
	"fmt"
	"math"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Number and sum are exact, quantiles approximate.
func TestManyValuesAreASample(t *testing.T) {
	room := &room{valuesMax, rowsMost}
	var few, many values
	for i := range exactly {
		few.add(float64(i), room)
	}
	const n = 50 * exactly
	for i := range n { // sorted input is the worst case
		many.add(float64(i), room)
	}
	if few.sampled() || few.n != exactly || few.total() != exactly*(exactly-1)/2 {
		t.Errorf("few: %d of %d", len(few.kept), few.n)
	}
	if !many.sampled() || len(many.kept) != exactly || many.n != n || many.total() != n*(n-1)/2 {
		t.Errorf("many: %d of %d, sum %f", len(many.kept), many.n, many.total())
	}
	d := distribution(many)
	if !d.Sampled || math.Abs(d.P50/n-0.5) > 0.02 || math.Abs(*d.P99/n-0.99) > 0.005 {
		t.Errorf("%+v", d)
	}
	var late values
	room.values = 0
	for i := range 1000 {
		late.add(float64(i), room)
	}
	if len(late.kept) != valuesLeast || late.n != 1000 {
		t.Errorf("without room: %d of %d", len(late.kept), late.n)
	}
}

// Distinct names are bounded, and all are counted.
func TestASampleHasSoManyRows(t *testing.T) {
	const n = 3000
	s := Collect(func(yield func(*tracepb.ResourceSpans) bool) {
		for i := range n {
			rs := &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{
				{Name: fmt.Sprint("CNI ", i), SpanId: []byte("call"), EndTimeUnixNano: 5, Attributes: kinded("call")},
				{
					Name: fmt.Sprint("command ", i), SpanId: []byte("it"), ParentSpanId: []byte("call"), EndTimeUnixNano: 5,
					Attributes: kinded("command"),
				},
			}}}}
			if !yield(rs) {
				return
			}
		}
	})
	stats := s.Statistics()
	rows, counted := 0, 0
	for _, kind := range stats.Kinds {
		rows += len(kind.Rows)
		for _, row := range kind.Rows {
			counted += row.Count
		}
	}
	if stats.Calls != n || len(stats.Kinds) != populationsMost || counted != n || rows > rowsMost+populationsMost {
		t.Errorf("%d calls of %d kinds, %d commands in %d rows", stats.Calls, len(stats.Kinds), counted, rows)
	}
}

func kinded(kind string) []*commonpb.KeyValue {
	return protobuf([]attribute.KeyValue{attribute.String("cniscope.kind", kind)})
}
