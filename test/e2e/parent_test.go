//go:build linux

package e2e

import (
	"fmt"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// Without containerd's tracing, the operation is the root.
func TestWithoutTracingAnOperationIsTheRoot(t *testing.T) {
	s := set(t, false, rig.Options{}, scope.Options{TOML: "[limits]\nsettle = \"30s\"\n"})
	harness.Check(t, s.rig.StopPod(s.ctx, s.pod(rig.PodOptions{Namespace: "shop", Name: "web"})))
	harness.Check(t, s.scope.Stop())
	all := s.podSpans("web", "CNI ADD", "CNI DEL")
	for name, command := range map[string]string{"pod network setup": "CNI ADD", "pod network teardown": "CNI DEL"} {
		root := one(t, all, "operation", name, "")
		if root.parent() != "" || root.text("k8s.pod.ip") == "" {
			t.Errorf("%s: parent %q, %v", name, root.parent(), root.attrs)
		}
		for _, ifname := range []string{"lo", "eth0"} {
			call := one(t, all, "call", command, ifname)
			if call.parent() != root.id() || call.trace() != root.trace() {
				t.Errorf("%s %s is not under %s", command, ifname, name)
			}
			// NRI's data is on the common resource only.
			if ip := call.attrs["k8s.pod.ip"]; ip != nil || root.attrs["k8s.pod.ip"] != nil {
				t.Errorf("%s %s says %s, too", command, ifname, ip)
			}
			if call.StartTimeUnixNano < root.StartTimeUnixNano || call.EndTimeUnixNano > root.EndTimeUnixNano {
				t.Errorf("%s %s is not within %s", command, ifname, name)
			}
		}
	}
	s.wholeTraces()
}

// With an unsampled parent an ordinary pod is not exported; a failed one is, with a link to the parent.
func TestAnUnsampledParentIsLinkedWhereAFailureIsKept(t *testing.T) {
	s := set(t, true, rig.Options{Plugins: map[string][]byte{"odd": spoil(`exit 1`)}}, scope.Options{TOML: unhurried})
	const trace = "0123456789abcdef0123456789abcdef"
	unsampled := *s
	unsampled.ctx = metadata.AppendToOutgoingContext(s.ctx, "traceparent", "00-"+trace+"-0123456789abcdef-00")

	harness.Check(t, s.rig.StopPod(unsampled.ctx, unsampled.pod(rig.PodOptions{Namespace: "shop", Name: "ordinary"})))
	s.network("failing", "odd")
	if _, err := s.rig.RunPod(unsampled.ctx, rig.PodOptions{Namespace: "shop", Name: "failing"}); err == nil {
		t.Fatal("the pod runs")
	}
	all := s.podSpans("failing", "CNI ADD")
	root := one(t, all, "operation", "pod network setup", "")
	if root.parent() != "" || !root.failed() || root.trace() == trace {
		t.Errorf("the root is in trace %s under %q, status %q", root.trace(), root.parent(), root.GetStatus().GetMessage())
	}
	for _, ifname := range []string{"lo", "eth0"} {
		call := one(t, all, "call", "CNI ADD", ifname)
		harness.Equal(t, call.parent(), root.id(), "CNI ADD", ifname, "is not under the root")
		if len(call.Links) != 1 || fmt.Sprintf("%x", call.Links[0].TraceId) != trace {
			t.Errorf("CNI ADD %s links to %v", ifname, call.Links)
		}
	}
	harness.Check(t, s.scope.Stop())
	if kept := of(s.wholeTraces(), "ordinary"); len(kept) > 0 {
		t.Errorf("the ordinary pod has %d spans, the first is %s", len(kept), kept[0].Name)
	}
}
