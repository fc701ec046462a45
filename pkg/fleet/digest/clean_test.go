package digest

import (
	"reflect"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/test/harness"
)

// Every text of a node is cleaned, also in new fields of a line or a call.
func TestEveryTextIsCleaned(t *testing.T) {
	const evil = "\x1b[2J\u202e\n"
	line, call := control.Line{}, control.Call{}
	fill(reflect.ValueOf(&line).Elem(), evil)
	fill(reflect.ValueOf(&call).Elem(), evil)
	line, call = Line(line), Call(call)
	for _, v := range []reflect.Value{reflect.ValueOf(line), reflect.ValueOf(call)} {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.String && strings.ContainsAny(f.String(), evil[:1]+"\u202e\n") {
				t.Errorf("%s.%s is printed as it came", v.Type(), v.Type().Field(i).Name)
			}
		}
	}
	evilValue := &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: evil}}
	encoded, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{
		Name: evil, Status: &tracepb.Status{Message: evil},
		Attributes: []*commonpb.KeyValue{{Key: evil, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{
			ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{evilValue}},
		}}}},
		Events: []*tracepb.Span_Event{{Name: evil, Attributes: []*commonpb.KeyValue{{Key: "k", Value: evilValue}}}},
	}}}}}}})
	harness.Check(t, err)
	spans := harness.Must(Spans(encoded))(t)
	if text := spans[0].String(); strings.ContainsAny(text, evil[:1]+"\u202e") || !strings.Contains(text, "x1b") {
		t.Error(text)
	}
}

func fill(v reflect.Value, text string) {
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.String {
			f.SetString(text)
		}
	}
}

// Findings that differ in numbers, addresses and node names are one.
func TestAlikeFindingsAreOne(t *testing.T) {
	var f Findings
	for node, summary := range map[string]string{
		"a": "the agent on a has not answered for 61s (10.0.0.1)", "b": "the agent on b has not answered for 7s (10.0.0.22)", "c": "the disk is full",
	} {
		f.Add(node, Report{Findings: []Found{{Check: "agent", Level: Problem, Summary: summary}}})
	}
	all := f.Sorted()
	if len(all) != 2 || strings.Join(all[0].Nodes, " ") != "a b" || !all[0].Differs || !strings.Contains(all[0].Summary,
		"61s") {
		t.Errorf("%+v", all)
	}
}

// A hung operation with a final line counts once, and a hostile node's causes are bounded.
func TestTopCounts(t *testing.T) {
	var top Top
	hung := control.Line{TraceID: "1", Command: "ADD", Result: control.Hung}
	over := hung
	over.Result = control.Slow
	lines := []control.Line{hung, over, {Result: control.Hung, TraceID: "2"}}
	for i := range 1000 {
		lines = append(lines, control.Line{Result: control.Failed, Cause: strings.Repeat("x", i%300) +
			string(rune('a'+i%26)), Plugin: "p"})
	}
	top.Add("n", lines, 5000)
	if top.Problems != 1002 || top.Of != 5000 || len(top.Causes()) > namesMost+1 {
		t.Errorf("%d of %d, %d causes", top.Problems, top.Of, len(top.Causes()))
	}
}
