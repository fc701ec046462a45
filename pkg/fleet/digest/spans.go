package digest

import (
	"fmt"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/cniscope/cniscope/pkg/text"
)

const spanText = 4096

// partsMost bounds an operation's messages, attributes and values included: two bytes decode to 300. An operation
// has up to 3,000 spans with 30 attributes.
const partsMost = 300_000

// counted returns false if a message has more messages than left.
func counted(message []byte, of protoreflect.MessageDescriptor, left *int) bool {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		rest := message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
			return false
		}
		message = rest[n:]
		field := of.Fields().ByNumber(number)
		if field == nil || field.Message() == nil || kind != protowire.BytesType {
			continue
		}
		inner, _ := protowire.ConsumeBytes(rest)
		if *left--; *left < 0 || !counted(inner, field.Message(), left) {
			return false
		}
	}
	return true
}

// Spans decodes TracesData into printable texts.
func Spans(encoded []byte) ([]*tracepb.ResourceSpans, error) {
	var data tracepb.TracesData
	left := partsMost
	if !counted(encoded, data.ProtoReflect().Descriptor(), &left) {
		return nil, fmt.Errorf("its spans cannot be read: they are no protobuf, or of more than %s parts", Number(partsMost))
	}
	if err := proto.Unmarshal(encoded, &data); err != nil {
		return nil, fmt.Errorf("its spans cannot be read: %w", err)
	}
	for _, resource := range data.ResourceSpans {
		attributes(resource.GetResource().GetAttributes())
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				span(s)
			}
		}
	}
	return data.ResourceSpans, nil
}

func span(s *tracepb.Span) {
	s.Name = text.Clean(s.Name, spanText)
	if s.Status != nil {
		s.Status.Message = text.Clean(s.Status.Message, spanText)
	}
	attributes(s.Attributes)
	for _, e := range s.Events {
		e.Name = text.Clean(e.Name, spanText)
		attributes(e.Attributes)
	}
	for _, l := range s.Links {
		attributes(l.Attributes)
	}
}

func attributes(all []*commonpb.KeyValue) {
	for _, kv := range all {
		kv.Key = text.Clean(kv.Key, text.Bound)
		value(kv.GetValue())
	}
}

func value(v *commonpb.AnyValue) {
	switch kind := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		kind.StringValue = text.Clean(kind.StringValue, spanText)
	case *commonpb.AnyValue_ArrayValue:
		for _, each := range kind.ArrayValue.GetValues() {
			value(each)
		}
	case *commonpb.AnyValue_KvlistValue:
		attributes(kind.KvlistValue.GetValues())
	}
}
