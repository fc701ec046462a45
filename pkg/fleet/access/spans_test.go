package access

import (
	"reflect"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/otlp/otlpjson"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/harness/otlptest"
)

// waited is an operation of shop/web that waited for bank/vault, in OTLP JSON. SECRET marks everything foreign.
const waited = `{"resourceSpans":[
{"resource":{"attributes":[{"key":"k8s.namespace.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"scope":{"name":"x"},"spans":[
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060701","name":"CNI ADD","status":{"code":2,"message":"STATUS"},"attributes":[
  {"key":"cniscope.verdict","value":{"stringValue":"VERDICT"}},
  {"key":"cniscope.remedy","value":{"stringValue":"REMEDY"}},
  {"key":"cniscope.cause","value":{"stringValue":"file_lock"}},
  {"key":"cniscope.biggest_part","value":{"stringValue":"lock of SECRET-1"}},
  {"key":"cniscope.biggest_part_name","value":{"stringValue":"waiting for lock /var/lib/SECRET-0"}},
  {"key":"cni.error.message","value":{"stringValue":"MESSAGE"}}],
  "links":[{"traceId":"ff02030405060708090a0b0c0d0e0f10","spanId":"ff02030405060701","attributes":[{"key":"cniscope.link","value":{"stringValue":"SECRET-2"}}]}]},
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060702","parentSpanId":"0102030405060701","name":"wait for lock","attributes":[
  {"key":"cniscope.lock.path","value":{"stringValue":"/run/xtables.lock"}},
  {"key":"cniscope.lock.holder_name","value":{"stringValue":"SECRET-3"}},
  {"key":"cniscope.lock.holder_pid","value":{"intValue":"4711"}},
  {"key":"cniscope.lock.holder_parent","value":{"stringValue":"SECRET-4"}}],
  "events":[{"name":"held","attributes":[{"key":"cniscope.lock.holder_name","value":{"stringValue":"SECRET-5"}}]}]},
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060703","parentSpanId":"0102030405060701","name":"call agent","attributes":[]},
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060704","parentSpanId":"0102030405060703","name":"SECRET-6","attributes":[
  {"key":"cniscope.attribution","value":{"stringValue":"candidate"}}]},
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060705","parentSpanId":"0102030405060704","name":"SECRET-7","attributes":[]},
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060706","parentSpanId":"0102030405060703","name":"clang","attributes":[
  {"key":"cniscope.attribution","value":{"stringValue":"certain"}}]},
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060707","name":"CNI ADD","attributes":[
  {"key":"cniscope.verdict","value":{"stringValue":"SECRET-8, another call's"}},{"key":"cniscope.remedy","value":{"stringValue":"SECRET-9"}}]},
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":"SECRET-10","attributes":[{"key":"k8s.namespace.name","value":{"stringValue":"bank"}}]}
]}]},
{"resource":{"attributes":[{"key":"k8s.namespace.name","value":{"stringValue":"bank"}}]},"scopeSpans":[{"scope":{"name":"x"},"spans":[
 {"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060709","name":"SECRET-11"}]}]}
]}`

func TestSpansTellOfThePodAlone(t *testing.T) {
	shop := Viewer{Namespace: "shop"}
	line := control.Line{Namespace: "shop", Pod: "web", Cause: "file_lock", Verdict: "VERDICT", Remedy: "REMEDY"}
	foreign := line
	foreign.Foreign, foreign.Own = true, "held by another pod"
	for name, c := range map[string]struct {
		line        control.Line
		there, gone []string
	}{
		"its own":    {line, []string{"VERDICT", "REMEDY", "STATUS", "MESSAGE", "/run/xtables.lock", "clang", "call agent"}, nil},
		"a foreign":  {foreign, []string{"held by another pod", "file_lock", "/run/xtables.lock", "clang"}, []string{"VERDICT", "REMEDY", "STATUS", "MESSAGE"}},
		"of no line": {control.Line{Namespace: "shop"}, []string{"clang"}, []string{"VERDICT", "REMEDY"}},
	} {
		seen := shop.Spans(append(decoded(t, waited), decoded(t, waited)...), []control.Line{{Namespace: "shop", Verdict: "of another operation"}, c.line})
		got, err := otlpjson.Lines(seen)
		harness.Check(t, err)
		harness.Equal(t, len(seen), 2, name, "operations")
		for _, text := range append(c.gone, "SECRET", "4711", "ff02030405060708") {
			if strings.Contains(string(got), text) {
				t.Errorf("%s: %s is told:\n%s", name, text, got)
			}
		}
		for _, text := range c.there {
			if !strings.Contains(string(got), text) {
				t.Errorf("%s: %s is withheld:\n%s", name, text, got)
			}
		}
	}
	if got := (Viewer{Operator: true}).Spans(decoded(t, waited), []control.Line{line}); !reflect.DeepEqual(got, decoded(t, waited)) {
		t.Errorf("an operator sees %s", got)
	}
	for _, nobodys := range []string{`{}`, `{"attributes":[{"key":"k8s.namespace.name"}]}`, `{"attributes":[{"key":"k8s.namespace.name","value":{"intValue":"7"}}]}`} {
		nobodys = `{"resourceSpans":[{"resource":` + nobodys + `,"scopeSpans":[{"spans":[{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060709","name":"SECRET-12"}]}]}]}`
		if got := shop.Spans(decoded(t, nobodys), nil); len(got) != 0 {
			t.Errorf("a developer sees spans of an unknown pod: %s", got)
		}
	}
}

func decoded(t *testing.T, json string) []*tracepb.ResourceSpans {
	t.Helper()
	var data tracepb.TracesData
	harness.Check(t, proto.Unmarshal(otlptest.Encoded(t, json), &data))
	return data.ResourceSpans
}
