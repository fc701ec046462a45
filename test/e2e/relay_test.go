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

// setRelayed is a stage with containerd 2.3.7, whose spans go through the relay to Jaeger.
func setRelayed(t *testing.T, protocol string) *stage {
	t.Helper()
	s := setJaeger(t)
	if protocol == "http/protobuf" {
		s.endpoint = s.jaeger.OTLPHTTP() + "/v1/traces"
	}
	addr := harness.Address(t)
	ro := byEnvironment("grpc", "OTEL_BSP_SCHEDULE_DELAY=200")(addr)
	ro.Containerd = scope.Containerd(t, "containerd-2.3")
	s.startRig(ro)
	s.startScope(scope.Options{TOML: keepAll + fmt.Sprintf("[relay]\nlisten = %q\n", addr)})
	s.ctx = metadata.AppendToOutgoingContext(s.ctx, "traceparent", sampled)
	return s
}

// Pods run while the upstream or the relay is down, and relayed spans arrive completely afterwards.
func TestARelayWithNobodyBehindItHoldsNobodyBack(t *testing.T) {
	for _, protocol := range []string{"grpc", "http/protobuf"} {
		t.Run(protocol, func(t *testing.T) { nobodyBehind(setRelayed(t, protocol)) })
	}
}

func nobodyBehind(s *stage) {
	s.Helper()
	s.jaeger.Kill9()
	id := s.pod(rig.PodOptions{Namespace: "shop", Name: "web"})
	harness.Check(s, s.rig.StopPod(s.ctx, id))
	harness.Check(s, s.scope.WaitLog(s.ctx, `"export failed, retrying" destination=relay`, 1))
	harness.Check(s, s.jaeger.Restart(s.ctx))
	const want = `
web ADD < cni.setup_pod_network < cri.sandbox.run < RunPodSandbox < asking
web DEL < StopPodSandbox < asking`
	s.ancestries(2, want, "web")

	s.scope.Kill9()
	harness.Check(s, s.rig.RemovePod(s.ctx, id))
	s.pod(rig.PodOptions{Namespace: "shop", Name: "unseen"})
}
