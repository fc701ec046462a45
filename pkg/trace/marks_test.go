package trace

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// Spans that end after their operation is exported hang below it, or below the span that the runtime named.
func TestWhatComesAfterAnOperationHangsBelowIt(t *testing.T) {
	const all = `pod network setup 10-40 operation
  CNI ADD 10-40 call eth0
    bridge ADD 10-40 run ADD eth0 bridge bridge int_value:1 int_value:0
      iptables 20-30 command ADD eth0 bridge iptables int_value:2 int_value:0
    first connection 40-2000040 first_connection ADD eth0 double_value:2 10.22.0.5:4000 10.22.0.1:53 late forwarding sysctl
    first connection 41-100 first_connection ADD eth0 dropped policy allowit policy
    work after ADD 40-70 work_after ADD eth0 agentd certain slow command
      ovs-vsctl 50-70 command ADD bridge ovs-vsctl int_value:6 int_value:0 agentd certain
  CNI ADD hung 10-35 hung ADD eth0 bridge iptables int_value:2 bool_value:true double_value:2.5e-05
  sandbox start 40-110 start ahook hook mendit bool_value:true hook
    * slow 110
    shim 45-49 step shim int_value:5 int_value:0 shim
    runc create 50-90 step runc int_value:3 int_value:1 oci_runtime 1
      nvidia 60-80 step nvidia int_value:4 int_value:0 SIGKILL hook SIGKILL
    dranet 90-110 step
  create network namespace 2-6 step
  prepare network 6-10 step
`
	belowIt(t, sandbox(), all)
	_, below, _ := strings.Cut(all, "\n  ")
	belowIt(t, sandbox(parent(sampled)), strings.ReplaceAll(below, "\n  ", "\n"))
}

func belowIt(t *testing.T, op *model.Operation, want string) {
	t.Helper()
	b := NewBuilder(IDs{Seed: "boot"}, nil, "v1")
	flight := model.Flight{
		Command: "ADD", IfName: "eth0", Plugin: "bridge", Name: "iptables", PID: 2, Operation: op.Key(), Trace: op.Calls[0].Trace, First: bridge(op).Process,
		Start: 10, Mono: op.Mono, Wall: op.Wall, Pod: op.Pod, ContainerID: op.ContainerID,
	}
	create := &model.Step{End: 90, Step: event.Step{Process: "3@3", PID: 3, ParentPID: 1, Started: 50, Kind: event.StepRuntime, Name: "runc", Verb: "create", Code: 1}}
	hook := &model.Step{End: 80, Step: event.Step{Process: "4@4", PID: 4, ParentPID: 3, Started: 60, Kind: event.StepHook, Name: "nvidia", Signal: "SIGKILL"}}
	shim := &model.Step{End: 49, Step: event.Step{Process: "5@5", PID: 5, ParentPID: 1, Started: 45, Kind: event.StepShim, Name: "shim"}}
	agent := &model.Image{
		Program: model.Program{Process: "6@6", PID: 6, Name: "ovs-vsctl", File: "/usr/bin/ovs-vsctl"}, Exit: model.Exit{Ended: true}, Start: 50, End: 70,
		By: &event.Actor{Process: "7@7", PID: 7, Name: "agentd"}, Attribution: &model.Attribution{Evidence: model.Certain},
	}
	spans := build(op)
	for _, mark := range []Trace{
		b.Hung(flight, 35),
		b.Connected(model.Connected{Flight: flight, End: 40, At: 2e6 + 40, Local: "10.22.0.5:4000", Remote: "10.22.0.1:53"}, &judge.Verdict{Cause: "forwarding", Says: "late", Remedy: "sysctl"}),
		b.Connected(model.Connected{Flight: flight, End: 41, At: 100, Never: true}, &judge.Verdict{Cause: "policy", Says: "dropped", Remedy: "allow it"}),
		b.Start(model.Start{Flight: flight, Network: 40, To: 110}, judge.Started{
			Slow: 7, Failed: "create failed", Verdict: &judge.Verdict{Cause: "hook", Says: "a hook", Remedy: "mend it"}, Unexplained: 5e6,
			Before: []judge.StartPart{{Name: "create network namespace", From: 2, To: 6}, {Name: "prepare network", From: 6, To: 10}},
			Parts: []judge.StartPart{
				{Name: "shim", From: 45, To: 49, Step: shim},
				{Name: "runc create", From: 50, To: 90, Step: create, Below: []*model.Step{hook}},
				{Name: "dranet", From: 90, To: 110},
			},
		}),
		b.After(model.After{Flight: flight, End: 40, Image: agent}, judge.Afterwards{Judgement: &judge.Judgement{}, Says: "slow", Cause: "command"}),
	} {
		spans = append(spans, mark.Read().ScopeSpans[0].Spans...)
		harness.Equal(t, attributeOf(mark.Read().Resource.Attributes, "k8s.pod.name").GetStringValue(), "web-0", "pod")
	}
	for _, s := range spans {
		if hex.EncodeToString(s.ParentSpanId) == sampled[36:52] {
			s.ParentSpanId = nil
		}
	}
	distinct(t, spans)
	got := drawn(spans, "cniscope.kind", "cni.command", "cni.ifname", "cni.plugin", "process.command", "process.pid", "process.exit.code", "cniscope.signal",
		"cniscope.hung", "cniscope.age_ms", "cniscope.first_connection_ms", "network.local.address", "network.peer.address", "cniscope.agent", "cniscope.attribution",
		"cniscope.verdict", "cniscope.cause", "cniscope.remedy", "cniscope.slow", "cniscope.step", "error.type")
	harness.Equal(t, got, want)
	failed := map[string]string{}
	for _, s := range spans {
		if s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			failed[s.Name] = s.Status.Message
		}
		if !slices.Equal(s.TraceId, spans[0].TraceId) {
			t.Errorf("%s is in another trace", s.Name)
		}
	}
	harness.Equal(t, strings.Join([]string{failed["first connection"], failed["sandbox start"], failed["runc create"], failed["nvidia"]}, "; "),
		"dropped; create failed; runc create exited 1; nvidia was killed by SIGKILL after 0s (sender unknown)")
	harness.Equal(t, len(failed), 4, "failed spans")
}
