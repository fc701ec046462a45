//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	tools, err := rig.Tools("containerd-2.3/containerd")
	harness.Check(t, err)
	addr := harness.Address(t)
	ro := byEnvironment("grpc", "OTEL_BSP_SCHEDULE_DELAY=200")(addr)
	ro.Containerd = filepath.Join(tools, "containerd-2.3")
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
	harness.Equal(s, s.ancestries(2, want, "web"), want)

	s.scope.Kill9()
	harness.Check(s, s.rig.RemovePod(s.ctx, id))
	s.pod(rig.PodOptions{Namespace: "shop", Name: "unseen"})
}

// A recording contains the relayed parents, so a replay gives the same trees.
func TestARecordingHangsUnderTheSpansThatWereRelayed(t *testing.T) {
	s := setRelayed(t, "grpc")
	file := filepath.Join(t.TempDir(), "relayed.rec")
	recorder := exec.CommandContext(s.ctx, program, "record", file, "--config", s.scope.Config())
	harness.Check(t, recorder.Start())
	harness.Eventually(s, func() error {
		_, err := os.Stat(file)
		return err
	})
	s.pod(rig.PodOptions{Namespace: "shop", Name: "web"})
	live := s.podSpans("web", "CNI ADD")
	harness.Eventually(s, func() error { // the last part is written at a tick
		data, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(data), "cni.setup_pod_network") {
			err = errors.New("the recording does not hold containerd's span")
		}
		return err
	})
	harness.Check(t, recorder.Process.Signal(os.Interrupt))
	harness.Check(t, recorder.Wait())
	replayed, err := exec.CommandContext(s.ctx, program, "show", file, "--format", "json").Output()
	harness.Check(t, err)
	for _, call := range only(live, "call", "CNI ADD") {
		want := fmt.Sprintf(`"spanId":"%s","parentSpanId":"%s"`, call.id(), call.parent())
		if call.trace() != askedIn || !strings.Contains(string(replayed), want) {
			t.Errorf("the recording gives no span %s in trace %s:\n%s", want, call.trace(), replayed)
		}
	}
}
