package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/test/harness"
)

// decoded reads the same with the library.
func decoded(request []byte) (spans []span, err error) {
	var all coltracepb.ExportTraceServiceRequest
	if err := proto.Unmarshal(request, &all); err != nil {
		return nil, err
	}
	for _, rs := range all.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				one := span{
					trace: s.TraceId, id: s.SpanId, state: s.TraceState, name: s.Name,
					start: s.StartTimeUnixNano, end: s.EndTimeUnixNano, status: s.GetStatus().GetMessage(),
				}
				for _, a := range s.Attributes {
					if a.Key == "sandbox.id" {
						one.sandbox = a.Value.GetStringValue()
					}
				}
				for _, e := range s.Events {
					one.events = append(one.events, e.Name)
				}
				spans = append(spans, one)
			}
		}
	}
	return spans, nil
}

func same(a, b span) bool {
	return bytes.Equal(a.trace, b.trace) && bytes.Equal(a.id, b.id) && a.state == b.state && a.name == b.name &&
		a.start == b.start && a.end == b.end && a.sandbox == b.sandbox && a.status == b.status &&
		slices.Equal(a.events, b.events)
}

func TestSpansAreReadAsTheLibraryReadsThem(t *testing.T) {
	for _, file := range []string{"containerd-2.3.7.pb", "containerd-1.7.35.pb", "containerd-1.7.35-warn.pb"} {
		request := recorded(t, file)
		want := harness.Must(decoded(request))(t)
		var got []span
		n, err := spansOf(request, func(s *span) { got = append(got, *s) })
		if err != nil || n != len(want) || !slices.EqualFunc(got, want, same) {
			t.Errorf("%s: %d spans (%v), the library reads %d", file, n, err, len(want))
		}
	}
}

func encode(t testing.TB, spans ...*tracepb.Span) []byte {
	t.Helper()
	data := harness.Must(proto.Marshal(&coltracepb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: spans}},
	}}}))(t)
	return data
}

// A small request must not need much memory: two bytes are a span.
func TestAHostileRequestNeedsLittleMemory(t *testing.T) {
	empty := bytes.Repeat([]byte{scopeSpans<<3 | 2, 0}, maxMessage/2-16)
	request := wrap(requestResourceSpans, wrap(resourceScopeSpans, empty))
	var n int
	allocated := testing.AllocsPerRun(1, func() { n, _ = spansOf(request, func(*span) {}) })
	if n < 2_000_000 || allocated > float64(n/100) { // goroutines of other tests allocate, too
		t.Errorf("%d spans needed %v allocations", n, allocated)
	}
	events := make([]*tracepb.Span_Event, 10*maxEvents)
	for i := range events {
		events[i] = &tracepb.Span_Event{Name: "x"}
	}
	long := string(bytes.Repeat([]byte{'x'}, 1<<20))
	_, err := spansOf(encode(t, &tracepb.Span{
		Name: long, TraceState: long, Events: events,
		Status: &tracepb.Status{Message: long}, Attributes: []*commonpb.KeyValue{{
			Key: "sandbox.id", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: long}},
		}},
	}), func(s *span) {
		if len(s.events) != maxEvents || len(s.name)+len(s.status)+len(s.sandbox) > 3*2048 || s.state != "" {
			t.Errorf("kept %d events and %d bytes", len(s.events), len(s.name)+len(s.status)+len(s.sandbox)+len(s.state))
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func wrap(number byte, b []byte) []byte {
	return append(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(len(b))), b...)
}

// A span that is broken anywhere is refused. Fields of another wire type are skipped, as the library does.
func TestWhatIsReadOfASpan(t *testing.T) {
	const broken = "\x0a\x05x" // a text of five bytes that has one
	state := strings.Repeat("s", maxState)
	for name, test := range map[string]struct {
		fields []byte
		want   string // name, state, start, sandbox, status, events
		broken bool
	}{
		"an ordinary one":             {slices.Concat(wrap(spanName, []byte("n")), wrap(spanState, []byte(state)), binary.LittleEndian.AppendUint64([]byte{spanStart<<3 | 1}, 5)), "n " + state + " 5   []", false},
		"a state that is too long":    {wrap(spanState, []byte(state+"s")), "  0   []", false},
		"a name that is a number":     {[]byte{spanName << 3, 7}, "  0   []", false},
		"a start that is a text":      {wrap(spanStart, []byte("n")), "  0   []", false},
		"an attribute and its key":    {wrap(spanAttributes, slices.Concat(wrap(pairKey, []byte("sandbox.id")), wrap(pairValue, wrap(valueString, []byte("v"))))), "  0 v  []", false},
		"another key":                 {wrap(spanAttributes, slices.Concat(wrap(pairKey, []byte("sandbox.no")), wrap(pairValue, wrap(valueString, []byte("v"))))), "  0   []", false},
		"a key that is a number":      {wrap(spanAttributes, slices.Concat([]byte{pairKey << 3, 7}, wrap(pairValue, wrap(valueString, []byte("v"))))), "  0   []", false},
		"a value that is no text":     {wrap(spanAttributes, slices.Concat(wrap(pairKey, []byte("sandbox.id")), wrap(pairValue, []byte{valueString << 3, 7}))), "  0   []", false},
		"events and a status":         {slices.Concat(wrap(spanEvents, wrap(eventName, []byte("e"))), wrap(spanEvents, wrap(eventName, []byte("f"))), wrap(spanStatus, wrap(statusMessage, []byte("m")))), "  0  m [e f]", false},
		"a field of a later version":  {[]byte{100<<3&0x7f | 0x80 | 5, 100 >> 4, 1, 2, 3, 4}, "  0   []", false},
		"cut in a tag":                {[]byte{0x80}, "", true},
		"cut in a number":             {[]byte{spanName << 3, 0x80}, "", true},
		"cut in a time":               {[]byte{spanStart<<3 | 1, 1, 2}, "", true},
		"cut in a text":               {[]byte(broken), "", true},
		"cut in another field":        {[]byte{99<<3&0x7f | 0x80 | 5, 99 >> 4, 1}, "", true},
		"an event that is cut":        {wrap(spanEvents, []byte(broken)), "", true},
		"a status that is cut":        {wrap(spanStatus, []byte(broken)), "", true},
		"an attribute that is cut":    {wrap(spanAttributes, []byte(broken)), "", true},
		"an attribute's value is cut": {wrap(spanAttributes, wrap(pairValue, []byte(broken))), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			request := wrap(requestResourceSpans, wrap(resourceScopeSpans, slices.Concat(wrap(scopeSpans, nil), wrap(scopeSpans, test.fields))))
			n, err := spansOf(request, func(s *span) {
				got = append(got, fmt.Sprint(s.name, " ", s.state, " ", s.start, " ", s.sandbox, " ", s.status, " ", s.events))
			})
			harness.Equal(t, errors.Is(err, errMalformed), test.broken, err)
			harness.Equal(t, n, 2, "spans")
			if test.broken {
				harness.Says(t, err.Error(), "span 2: ")
			} else {
				harness.Equal(t, got[1], test.want)
			}
		})
	}
	read := 0
	n, err := spansOf(encode(t, make([]*tracepb.Span, maxSpans+6)...), func(*span) { read++ })
	harness.Check(t, err)
	harness.Equal(t, fmt.Sprint(n, read), fmt.Sprint(maxSpans+6, maxSpans), "spans, and those that are read")
}

// No panic; whatever the library accepts gives the same spans.
func FuzzSpans(f *testing.F) {
	f.Add(encode(f, &tracepb.Span{
		Name: "cri.sandbox.run", TraceId: make([]byte, 16), SpanId: make([]byte, 8),
		Attributes: []*commonpb.KeyValue{{
			Key: "sandbox.id", Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: one}},
		}},
	}))
	f.Add(encode(f, &tracepb.Span{
		Name: "runtime.v1.RuntimeService/StopPodSandbox", StartTimeUnixNano: 1, EndTimeUnixNano: 2,
		Events: []*tracepb.Span_Event{{Name: `StopPodSandbox for "` + one + `"`}}, Status: &tracepb.Status{Message: "m"},
	}))
	// The library ignores the spans' field if it is a number.
	f.Add([]byte{requestResourceSpans<<3 | 2, 4, resourceScopeSpans<<3 | 2, 2, scopeSpans << 3, 0})
	f.Fuzz(func(t *testing.T, request []byte) {
		var got []span
		n, err := spansOf(request, func(s *span) {
			got = append(got, *s)
			_ = aboveOf(s, 0)
		})
		want, invalid := decoded(request)
		if invalid != nil {
			return // the library also checks unread fields
		}
		if err != nil {
			t.Fatalf("the library takes it: %v", err)
		}
		if n != len(want) || len(got) != min(n, maxSpans) {
			t.Fatalf("%d spans (%d read), the library reads %d", n, len(got), len(want))
		}
	})
}
