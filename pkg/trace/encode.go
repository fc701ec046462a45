package trace

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// encoded is proto.Marshal for this package's fields.
func encoded(all *tracepb.ResourceSpans) ([]byte, error) {
	const usualSpan = 640
	room := 1 << 10
	for _, scope := range all.ScopeSpans {
		room += len(scope.Spans) * usualSpan
	}
	w := &wire{data: make([]byte, room), at: room}
	w.text(3, all.SchemaUrl)
	for _, scope := range slices.Backward(all.ScopeSpans) {
		before := w.written()
		w.spans(2, scope.Spans)
		if by := scope.Scope; by != nil {
			before := w.written()
			w.text(2, by.Version)
			w.text(1, by.Name)
			w.message(1, before)
		}
		w.message(2, before)
	}
	if all.Resource != nil {
		before := w.written()
		w.attributes(1, all.Resource.Attributes)
		w.message(1, before)
	}
	w.message(1, 0)
	return slices.Clip(slices.Clone(w.data[w.at:])), w.invalid
}

// wire is written backward: lengths come first.
type wire struct {
	data    []byte
	at      int
	invalid error
}

func (w *wire) written() int { return len(w.data) - w.at }

func (w *wire) spans(field protowire.Number, spans []*tracepb.Span) {
	for _, s := range slices.Backward(spans) {
		before := w.written()
		if s.Flags != 0 {
			w.put4(16, s.Flags)
		}
		if s.Status != nil {
			before := w.written()
			w.number(3, uint64(s.Status.Code))
			w.text(2, s.Status.Message)
			w.message(15, before)
		}
		for _, l := range slices.Backward(s.Links) {
			before := w.written()
			w.attributes(4, l.Attributes)
			w.text(3, l.TraceState)
			w.bytes(2, l.SpanId)
			w.bytes(1, l.TraceId)
			w.message(13, before)
		}
		for _, e := range slices.Backward(s.Events) {
			before := w.written()
			w.attributes(3, e.Attributes)
			w.text(2, e.Name)
			w.fixed64(1, e.TimeUnixNano)
			w.message(11, before)
		}
		w.attributes(9, s.Attributes)
		w.fixed64(8, s.EndTimeUnixNano)
		w.fixed64(7, s.StartTimeUnixNano)
		w.number(6, uint64(s.Kind))
		w.text(5, s.Name)
		w.bytes(4, s.ParentSpanId)
		w.text(3, s.TraceState)
		w.bytes(2, s.SpanId)
		w.bytes(1, s.TraceId)
		w.message(field, before)
	}
}

func (w *wire) attributes(field protowire.Number, all []*commonpb.KeyValue) {
	for _, kv := range slices.Backward(all) {
		before := w.written()
		w.value(2, kv.Value)
		w.text(1, kv.Key)
		w.message(field, before)
	}
}

// value writes zeros.
func (w *wire) value(field protowire.Number, v *commonpb.AnyValue) {
	before := w.written()
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		w.string(1, v.StringValue)
	case *commonpb.AnyValue_BoolValue:
		w.varint(protowire.EncodeBool(v.BoolValue))
		w.tag(2, protowire.VarintType)
	case *commonpb.AnyValue_IntValue:
		w.varint(uint64(v.IntValue))
		w.tag(3, protowire.VarintType)
	case *commonpb.AnyValue_DoubleValue:
		w.put8(4, math.Float64bits(v.DoubleValue))
	case *commonpb.AnyValue_ArrayValue:
		before := w.written()
		for _, one := range slices.Backward(v.ArrayValue.GetValues()) {
			w.value(1, one)
		}
		w.message(5, before)
	default:
		w.invalid = fmt.Errorf("attribute of type %T", v)
	}
	w.message(field, before)
}

func (w *wire) message(field protowire.Number, before int) {
	w.varint(uint64(w.written() - before))
	w.tag(field, protowire.BytesType)
}

func (w *wire) text(field protowire.Number, v string) {
	if v != "" {
		w.string(field, v)
	}
}

func (w *wire) string(field protowire.Number, v string) {
	if !utf8.ValidString(v) {
		w.invalid = fmt.Errorf("text is not UTF-8: %q", v)
	}
	copy(w.room(len(v)), v)
	w.varint(uint64(len(v)))
	w.tag(field, protowire.BytesType)
}

func (w *wire) bytes(field protowire.Number, v []byte) {
	if len(v) > 0 {
		copy(w.room(len(v)), v)
		w.varint(uint64(len(v)))
		w.tag(field, protowire.BytesType)
	}
}

func (w *wire) number(field protowire.Number, v uint64) {
	if v != 0 {
		w.varint(v)
		w.tag(field, protowire.VarintType)
	}
}

func (w *wire) fixed64(field protowire.Number, v uint64) {
	if v != 0 {
		w.put8(field, v)
	}
}

func (w *wire) put8(field protowire.Number, v uint64) {
	binary.LittleEndian.PutUint64(w.room(8), v)
	w.tag(field, protowire.Fixed64Type)
}

func (w *wire) put4(field protowire.Number, v uint32) {
	binary.LittleEndian.PutUint32(w.room(4), v)
	w.tag(field, protowire.Fixed32Type)
}

func (w *wire) tag(field protowire.Number, t protowire.Type) { w.varint(protowire.EncodeTag(field, t)) }

func (w *wire) varint(v uint64) {
	if v < 0x80 {
		w.room(1)[0] = byte(v)
		return
	}
	binary.PutUvarint(w.room(protowire.SizeVarint(v)), v)
}

func (w *wire) room(n int) []byte {
	if n > w.at {
		more := make([]byte, 2*len(w.data)+n)
		copy(more[len(more)-len(w.data):], w.data)
		w.at, w.data = w.at+len(more)-len(w.data), more
	}
	w.at -= n
	return w.data[w.at : w.at+n]
}
