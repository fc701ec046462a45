package digest

import (
	"fmt"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/text"
)

// spanText bounds one text of a span: arguments and messages.
const spanText = 4096

// Spans decodes TracesData and makes its texts printable.
func Spans(encoded []byte) ([]*tracepb.ResourceSpans, error) {
	var data tracepb.TracesData
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
