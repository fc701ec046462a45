package trace

import (
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	ofNRI     = "00-11111111111111111111111111111111-2222222222222222-01"
)

var options = judge.Options{
	Thresholds: judge.Thresholds{Command: 250 * time.Millisecond, Call: 2 * time.Second},
	Sampling:   judge.Sampling{Ratio: 1, Keep: []judge.Reason{judge.Slow, judge.Failed}},
}

// sandbox is a setup with one call: bridge, which ran iptables.
func sandbox(change ...func(*model.Operation)) *model.Operation {
	iptables := &model.Image{
		Program: model.Program{
			Process: "2@2", PID: 2, Name: "iptables", File: "/usr/sbin/xtables-nft-multi",
			Args: []string{"-S"},
		},
		Exit:  model.Exit{Ended: true},
		Start: 20,
		End:   30,
	}
	bridge := &model.Image{
		Program:  model.Program{Process: "1@1", PID: 1, Name: "bridge", File: "/opt/cni/bin/bridge"},
		Exit:     model.Exit{Ended: true},
		Run:      &model.Run{Plugin: "bridge", Command: "ADD"},
		Start:    10,
		End:      40,
		Children: []*model.Image{iptables},
	}
	op := &model.Operation{
		Kind: model.Setup, ContainerID: "c1", Pod: event.Pod{Namespace: "shop", Name: "web-0", UID: "u1"},
		Start: 10, End: 40, Mono: 0, Wall: 1000, Closed: model.ClosedRunning,
		Calls: []*model.Call{{
			Command: "ADD", IfName: "eth0", NetNS: "/run/netns/x", Network: "pods",
			Runs: []*model.Image{bridge}, Start: 10, End: 40,
		}},
	}
	for _, f := range change {
		f(op)
	}
	return op
}

func bridge(op *model.Operation) *model.Image   { return op.Calls[0].Runs[0] }
func iptables(op *model.Operation) *model.Image { return bridge(op).Children[0] }

func parent(traceparent string) func(*model.Operation) {
	return func(op *model.Operation) { op.Calls[0].Trace.Parent = traceparent }
}

func build(op *model.Operation) []*tracepb.Span {
	b := NewBuilder(IDs{Seed: "boot"}, Node{Name: "n1"}.Resource(), "v1")
	return b.Build(op, options.Judge(op)).Read().ScopeSpans[0].Spans
}

func find(spans []*tracepb.Span, name string) *tracepb.Span {
	i := slices.IndexFunc(spans, func(s *tracepb.Span) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return spans[i]
}

func said(s *tracepb.Span, key string) *commonpb.AnyValue { return attributeOf(s.Attributes, key) }

func attributeOf(all []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	for _, kv := range all {
		if kv.Key == key {
			return kv.Value
		}
	}
	return nil
}

func TestWhatASpanHangsUnder(t *testing.T) {
	nri := func(op *model.Operation) {
		op.Sandbox = &event.Sandbox{Phase: event.SandboxRunning, Trace: event.TraceContext{Parent: ofNRI}}
	}
	annotated := func(value string) func(*model.Operation) {
		return func(op *model.Operation) {
			op.Sandbox = &event.Sandbox{Annotations: map[string]string{event.PodTraceparent: value}}
		}
	}
	for name, test := range map[string]struct {
		op   *model.Operation
		want string // each span: name, parent's name or id, links
	}{
		"the span that the environment names": {
			sandbox(parent(sampled), nri), "CNI ADD<b7ad6b7169203331, bridge ADD<CNI ADD, iptables<bridge ADD",
		},
		"an own root where there is none": {
			sandbox(), "pod network setup<-, CNI ADD<pod network setup, bridge ADD<CNI ADD, iptables<bridge ADD",
		},
		"an own root that links to NRI's call": {
			sandbox(nri), "pod network setup<- ->2222222222222222, CNI ADD<pod network setup, bridge ADD<CNI ADD, iptables<bridge ADD",
		},
		"an own root that links to what was not sampled": {
			sandbox(parent(unsampled)), "pod network setup<-, CNI ADD<pod network setup ->b7ad6b7169203331, bridge ADD<CNI ADD, iptables<bridge ADD",
		},
		"a link to what the pod's author names": {
			sandbox(annotated(ofNRI)), "pod network setup<- ->2222222222222222, CNI ADD<pod network setup, bridge ADD<CNI ADD, iptables<bridge ADD",
		},
		"a link beside the parent": {
			sandbox(parent(sampled), annotated(ofNRI)), "CNI ADD<b7ad6b7169203331 ->2222222222222222, bridge ADD<CNI ADD, iptables<bridge ADD",
		},
		"a broken annotation is no link": {
			sandbox(annotated("00-11111111111111111111111111111111-2222222222222222-01\n")), "pod network setup<-, CNI ADD<pod network setup, bridge ADD<CNI ADD, iptables<bridge ADD",
		},
		"a broken context is none": {
			sandbox(parent("00-zz-zz-01")), "pod network setup<-, CNI ADD<pod network setup, bridge ADD<CNI ADD, iptables<bridge ADD",
		},
	} {
		t.Run(name, func(t *testing.T) {
			names := map[string]string{"": "-"}
			var got []string
			for _, s := range build(test.op) {
				names[string(s.SpanId)] = s.Name
				up, known := names[string(s.ParentSpanId)]
				if !known {
					up = hex.EncodeToString(s.ParentSpanId)
				}
				line := s.Name + "<" + up
				for _, l := range s.Links {
					line += " ->" + hex.EncodeToString(l.SpanId)
				}
				got = append(got, line)
			}
			harness.Equal(t, strings.Join(got, ", "), test.want)
		})
	}
}

func TestStatusErrorMeansThatTheCallFailed(t *testing.T) {
	fails := func(im func(*model.Operation) *model.Image, code uint32) func(*model.Operation) {
		return func(op *model.Operation) { im(op).Code = code }
	}
	dies := func(signal string) func(*model.Operation) {
		return func(op *model.Operation) { iptables(op).Signal = signal }
	}
	for name, test := range map[string]struct {
		op   *model.Operation
		want []string // the spans with status Error
	}{
		"all went well":                      {sandbox(), nil},
		"a command that exits 1 is no error": {sandbox(fails(iptables, 1)), nil},
		"a plugin that exits 1 fails the call": {
			sandbox(fails(bridge, 1)),
			[]string{"pod network setup", "CNI ADD", "bridge ADD"},
		},
		"with it the command that failed": {
			sandbox(fails(bridge, 1), fails(iptables, 4)),
			[]string{"pod network setup", "CNI ADD", "bridge ADD", "iptables"},
		},
		"a signal is an error of the command":    {sandbox(dies("SIGSEGV")), []string{"iptables"}},
		"a reader that has read enough is none":  {sandbox(dies("SIGPIPE")), nil},
		"a plugin that never ran fails the call": {sandbox(func(op *model.Operation) { op.Calls[0].NeverRun = []string{"portmap"} }), []string{"pod network setup", "CNI ADD"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range build(test.op) {
				if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
					got = append(got, s.Name)
				}
			}
			harness.EqualSlices(t, got, test.want)
		})
	}
}

type attributed struct{ span, key, want string }

func says(t *testing.T, spans []*tracepb.Span, all []attributed) {
	t.Helper()
	for _, test := range all {
		// protobuf's text form has random spaces
		got := strings.ReplaceAll(said(find(spans, test.span), test.key).String(), " ", "")
		harness.Equal(t, got, test.want, test.span, test.key)
	}
}

func TestWhatIsSaid(t *testing.T) {
	op := sandbox(func(op *model.Operation) {
		iptables(op).End = iptables(op).Start + int64(time.Second)
		iptables(op).Code = 4
		op.Running = true
		op.Calls[0].Baggage = "tier=1,team=blue%0Ared;note"
		op.Sandbox = &event.Sandbox{
			Phase: event.SandboxStopped, IPs: []string{"10.0.0.2", "fd00::2"},
			Labels: map[string]string{
				"app": "web", "io.cri-containerd.kind": "sandbox",
				"oci_runtime_type": "io.containerd.runc.v2",
			},
		}
	})
	spans := build(op)
	for _, kv := range identity(op) {
		if strings.HasPrefix(string(kv.Key), "k8s.pod.label.") && kv.Key != "k8s.pod.label.app" {
			t.Errorf("%s is not a label of the pod", kv.Key)
		}
	}
	says(t, spans, []attributed{
		{"iptables", "k8s.pod.name", `<nil>`}, // only the resource has it
		{"CNI ADD", "cni.id", `string_value:"c1"`},
		{"CNI ADD", "cniscope.baggage", `array_value:{values:{string_value:"team=blue\\nred"}values:{string_value:"tier=1"}}`},
		{"CNI ADD", "cni.path", `string_value:"/run/netns/x"`},
		{"iptables", "cni.plugin", `string_value:"bridge"`},
		{"iptables", "cni.name", `string_value:"pods"`},
		{"iptables", "process.executable.name", `string_value:"xtables-nft-multi"`},
		{"iptables", "process.exit.code", `int_value:4`},
		{"iptables", "error.type", `<nil>`},
		{"iptables", "cniscope.slow", `bool_value:true`},
		{"iptables", "cniscope.slow_threshold_ms", `double_value:250`},
		{"CNI ADD", "netns.path", `string_value:"/run/netns/x"`},
		{"CNI ADD", "cniscope.slow_commands", `int_value:1`},
		{"pod network setup", "cniscope.sandbox_running", `bool_value:true`},
	})
	if s := find(spans, "iptables"); len(s.Events) != 1 || s.Events[0].Name != "slow" {
		t.Errorf("events: %v", s.Events)
	}
	if s := find(spans, "bridge ADD"); s.StartTimeUnixNano != 1010 || s.EndTimeUnixNano != 1040 {
		t.Errorf("bridge lasts from %d to %d", s.StartTimeUnixNano, s.EndTimeUnixNano)
	}
}

func TestASlowCallIsMarked(t *testing.T) {
	for took, want := range map[time.Duration]int{time.Second: 0, 3 * time.Second: 1} {
		spans := build(sandbox(func(op *model.Operation) {
			call := op.Calls[0]
			call.Start, call.End = 5, 5+int64(took)
			bridge(op).Start, bridge(op).End, op.End = call.Start, call.End, call.End
		}))
		call, root := find(spans, "CNI ADD"), find(spans, "pod network setup")
		if slow := said(call, "cniscope.slow").GetBoolValue(); slow != (want > 0) || len(call.Events) != want {
			t.Errorf("a call of %s is slow: %v; events: %v", took, slow, call.Events)
		}
		harness.Equal(t, root.StartTimeUnixNano, 1005, "the operation begins at")
		for _, e := range call.Events {
			if limit := attributeOf(e.Attributes, "cniscope.slow_threshold_ms").GetDoubleValue(); e.Name != "slow" ||
				e.TimeUnixNano != call.EndTimeUnixNano || limit != 2000 {
				t.Errorf("event %v of a call that ends at %d", e, call.EndTimeUnixNano)
			}
		}
	}
}

func TestWhatAnOperationIsCalled(t *testing.T) {
	for kind, want := range map[model.Kind]string{
		model.Setup: "pod network setup", model.Teardown: "pod network teardown", model.Other: "pod network check",
	} {
		if spans := build(sandbox(func(op *model.Operation) { op.Kind = kind })); find(spans, want) == nil {
			t.Errorf("no %s in %v", want, spans)
		}
	}
}

func TestWhoseExitCodeIsKnown(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*model.Image)
		code, signal bool
	}{
		"it exited":               {func(*model.Image) {}, true, false},
		"a signal ended it":       {func(im *model.Image) { im.Signal = "SIGKILL" }, false, true},
		"it runs on":              {func(im *model.Image) { im.Ended = false }, false, false},
		"it ran another program":  {func(im *model.Image) { im.Replaced = true }, false, false},
		"nobody saw how it ended": {func(im *model.Image) { im.Unseen = true }, false, false},
	} {
		s := find(build(sandbox(func(op *model.Operation) { test.change(iptables(op)) })), "iptables")
		if code, signal := said(s, "process.exit.code"), said(s, "cniscope.signal"); (code != nil) != test.code ||
			(signal != nil) != test.signal {
			t.Errorf("%s: exit code %v, signal %v", name, code, signal)
		}
	}
}

func TestAnOutageHasWhatChangedInIt(t *testing.T) {
	told := func(texts ...string) (all []model.Said) {
		for i, text := range texts {
			all = append(all, model.Said{At: int64(10 * i), Text: text})
		}
		return all
	}
	for want, folder := range [][]model.Said{told("no network"), told("no network", "a"), told("no network", "a", "b")} {
		o := model.Outage{Interval: model.Interval{End: 40}, Reasons: told("not initialized"), Folder: folder}
		o.Overdue = want == 2
		o.Lacks = []model.Lack{{What: event.LackFolder, Said: told("no folder")[0]}}
		s := NewBuilder(IDs{Seed: "boot"}, nil, "v1").Outage(o).Read().ScopeSpans[0].Spans[0]
		if got := said(s, "cniscope.folder_changes").GetIntValue(); got != int64(want) || len(s.Events) != 3+want {
			t.Errorf("%d changes of the folder, want %d; events: %v", got, want, s.Events)
		}
		harness.Equal(t, said(s, "cniscope.cause").GetStringValue(), string(event.LackFolder), "cause")
		harness.Equal(t, said(s, "cniscope.slow").GetBoolValue(), o.Overdue, "slow")
		harness.Equal(t, said(s, "cniscope.networks").GetStringValue(), folder[want].Text, "networks")
	}
}

func TestAnOperationSpansItsCalls(t *testing.T) {
	op := sandbox(func(op *model.Operation) { op.Start = 12 })
	for _, s := range build(op) {
		if strings.HasPrefix(s.Name, "pod network") && s.StartTimeUnixNano != 1010 {
			t.Errorf("%s begins at %d, its call at 1010", s.Name, s.StartTimeUnixNano)
		}
	}
}

func TestSpanNamesAreFew(t *testing.T) {
	b := NewBuilder(IDs{}, nil, "v1")
	names := map[string]bool{}
	for i := range 1000 {
		op := sandbox(func(op *model.Operation) { iptables(op).Name = fmt.Sprint("tool-", i) })
		for _, s := range b.Build(op, options.Judge(op)).Read().ScopeSpans[0].Spans {
			names[s.Name] = true
		}
	}
	if len(names) != 200+3 || !names["command"] {
		t.Errorf("%d names", len(names))
	}
}

func TestNobodyReplacesTheResource(t *testing.T) {
	for service, want := range map[string]string{"": "cniscope", "other": "other"} {
		given := map[string]string{"service.name": service, "k8s.node.name": "n2", "team": "net"}
		got := map[string][]string{}
		for _, kv := range (Node{Name: "n1", Attributes: given}).Resource() {
			got[string(kv.Key)] = append(got[string(kv.Key)], kv.Value.AsString())
		}
		harness.Equal(t, fmt.Sprint(got["service.name"], got["k8s.node.name"], got["team"]), "["+want+"] [n1] [net]", service)
	}
}

// bridge, and iptables 57 times
func BenchmarkBuild(b *testing.B) {
	op := sandbox(func(op *model.Operation) {
		one := iptables(op)
		for i := range 57 {
			next := *one
			next.Process = event.Process(fmt.Sprint("3@", i))
			bridge(op).Children = append(bridge(op).Children, &next)
		}
	})
	j := options.Judge(op)
	builder := NewBuilder(IDs{}, nil, "v1")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = builder.Build(op, j).Encoded()
	}
}

func TestTheErrorTypeOfAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		change       func(*model.Image)
		call, plugin string
	}{
		"an exit code":                    {func(im *model.Image) { im.Code = 3 }, "3", "3"},
		"a signal":                        {func(im *model.Image) { im.Signal = "SIGKILL" }, "SIGKILL", "SIGKILL"},
		"no JSON":                         {invalid, "invalid result", "invalid result"},
		"no JSON of a plugin that failed": {func(im *model.Image) { invalid(im); im.Code = 3 }, "3", "3"},
		"an error that ended well":        {func(im *model.Image) { im.Run.Result = &event.Result{Code: 7} }, "", ""},
		"nothing":                         {func(*model.Image) {}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			op := sandbox()
			test.change(bridge(op))
			spans := build(op)
			for span, want := range map[string]string{"CNI ADD": test.call, "bridge ADD": test.plugin} {
				s := find(spans, span)
				harness.Equal(t, said(s, "error.type").GetStringValue(), want, span, "error.type")
				harness.Equal(t, s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, (want != ""), span, "failed")
			}
		})
	}
}

func invalid(im *model.Image) {
	im.Run.Result = &event.Result{Invalid: "no valid JSON at byte 1 of 16"}
}

// A backend counts by the spans' tracestate where a ratio leaves operations out; a foreign trace keeps its own.
func TestASampledTraceHasItsThreshold(t *testing.T) {
	o := options
	o.Ratio, o.ParentBased, o.Keep = math.Nextafter(1, 0), true, nil
	for above, want := range map[string]bool{"": true, sampled: false} {
		op := sandbox(parent(above))
		for _, s := range NewBuilder(IDs{}, nil, "").Build(op, o.Judge(op)).Read().ScopeSpans[0].Spans {
			if strings.HasPrefix(s.TraceState, "ot=th:000000000000") != want || s.Flags&flagRandom != 0 != want {
				t.Errorf("below %q: %s has tracestate %q, flags %x", above, s.Name, s.TraceState, s.Flags)
			}
		}
	}
}

// Without parent_based it is the operation's own ratio that decided, also below a parent.
func TestOnlyAnOwnRatioReplacesAParentsThreshold(t *testing.T) {
	for _, tt := range []struct {
		ratio       float64
		parentBased bool
		slow        time.Duration
		rv, want    string
	}{
		{math.Nextafter(1, 0), false, time.Second, "", `^ot=th:000000000000[0-9a-f]+;rv:[0-9a-f]{14},vendor=x$`},
		{1, false, time.Second, "", `^ot=th:0;rv:[0-9a-f]{14},vendor=x$`},
		{0.5, false, 1, "", `^ot=th:0;rv:[0-9a-f]{14},vendor=x$`},
		{0.5, true, time.Second, "", `^vendor=x,ot=th:c$`},
		{0.5, true, 1, "", `^vendor=x,ot=th:c$`},

		{0.5, false, 1, ";rv:aaaaaaaaaaaaaa", `^vendor=x,ot=th:c;rv:a{14}$`},
	} {
		o := options
		o.Ratio, o.ParentBased, o.Call = tt.ratio, tt.parentBased, tt.slow
		op := sandbox(parent(sampled))
		op.Calls[0].Trace.State = "vendor=x,ot=th:c" + tt.rv
		for _, s := range NewBuilder(IDs{}, nil, "").Build(op, o.Judge(op)).Read().ScopeSpans[0].Spans {
			if s.Name == "CNI ADD" && !regexp.MustCompile(tt.want).MatchString(s.TraceState) {
				t.Errorf("%+v: tracestate %s", tt, s.TraceState)
			}
		}
	}
}
