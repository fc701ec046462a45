package digest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/test/harness"
)

func TestListsAreBounded(t *testing.T) {
	var said struct{ Operations List[control.Line] }
	for document, want := range map[string]int{
		`{"operations":[{"pod":"web-0"},{"pod":"web-1"}]}`: 2, `{"operations":[]}`: 0, `{"operations":null}`: 0, `{}`: 0,
	} {
		said.Operations = nil
		if err := json.Unmarshal([]byte(document), &said); err != nil || len(said.Operations) != want {
			t.Errorf("%s: %v, %v", document, said.Operations, err)
		}
	}
	for _, wrong := range []string{`{"operations":{}}`, `{"operations":"x"}`, `{"operations":[1]}`, `{"operations":7}`} {
		if err := json.Unmarshal([]byte(wrong), &said); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
	hostile := []byte(`{"operations":[{}` + strings.Repeat(",{}", 1<<20) + `]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := json.Unmarshal(hostile, &said); err == nil || !strings.Contains(err.Error(), "12,000") {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("%d MB", took>>20)
	}
}

// Repeated findings of one node count once.
func TestANodeIsNamedOnce(t *testing.T) {
	var f Findings
	r, err := UnmarshalReport([]byte(`{"checks":[{"name":"x","state":"could not check","reason":"1"},{"name":"x","state":"could not check","reason":"2"}]}`))
	harness.Check(t, err)
	f.Add("node-1", r)
	f.Add("node-2", r)
	if all := f.Unmade(); len(all) != 1 || len(all[0].Nodes) != 2 {
		t.Errorf("%+v", all)
	}
}

// Before: one node could fill the list of findings, so that the others' were left out.
func TestANodeLeavesRoomForOthers(t *testing.T) {
	var f Findings
	report := func(kinds int) (r Report) {
		for n := range kinds {
			check := strings.Repeat("x", n+1)
			r.Findings = append(r.Findings, Found{Check: check, Level: Problem, Summary: "s"})
			r.Checks = append(r.Checks, Check{Name: check, State: uncheckedState})
		}
		return r
	}
	f.Add("hostile", report(1000))
	f.Add("honest", Report{Findings: []Found{{Check: "agent", Level: Problem, Summary: "down"}}})
	all := f.Sorted()
	if !slices.ContainsFunc(all, func(k Finding) bool { return k.Check == "agent" }) || len(all)+len(f.Unmade())+f.Left != 2001 {
		t.Errorf("%d kinds, %d left out", len(all), f.Left)
	}
}

// Before: 4 MiB of empty spans, or attributes, took 600 MB.
func TestSpansAreBounded(t *testing.T) {
	within := func(number protowire.Number, inner []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), inner)
	}
	empty := bytes.Repeat(within(2, nil), 1<<21)
	attributes := bytes.Repeat(within(9, nil), 1<<21)
	for name, encoded := range map[string][]byte{
		"spans": within(1, within(2, empty)), "attributes": within(1, within(2, within(2, attributes))),
		"resources": bytes.Repeat(within(1, nil), 1<<21), "no protobuf": {7},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Spans(encoded); err == nil {
			t.Errorf("%s are taken", name)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
			t.Errorf("%s: %d MB", name, took>>20)
		}
	}
}

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
