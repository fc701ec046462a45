//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// While nobody answers upstream, and while the relay itself is gone, pods run as ever; and
// what the relay took before arrives when somebody answers again, whole.
func TestARelayWithNobodyBehindItHoldsNobodyBack(t *testing.T) {
	s := setJaeger(t)
	tools, err := rig.Tools("containerd-2.3/containerd")
	check(t, err)
	addr := freeAddress(t)
	ro := byEnvironment("grpc", "OTEL_BSP_SCHEDULE_DELAY=200")(addr)
	ro.Containerd = filepath.Join(tools, "containerd-2.3")
	s.startRig(ro)
	s.startScope(scope.Options{TOML: keepAll + fmt.Sprintf("[relay]\nlisten = %q\n", addr)})
	s.ctx = metadata.AppendToOutgoingContext(s.ctx, "traceparent", sampled)

	s.jaeger.Kill9()
	id := s.pod(rig.PodOptions{Namespace: "shop", Name: "web"})
	check(t, s.rig.StopPod(s.ctx, id))
	check(t, s.scope.WaitLog(s.ctx, "containerd's spans cannot be relayed now", 1))
	check(t, s.jaeger.Restart(s.ctx))
	const want = `
web ADD < cni.setup_pod_network < cri.sandbox.run < RunPodSandbox < asking
web DEL < StopPodSandbox < asking`
	if got := s.ancestries(2, want, "web"); got != want {
		t.Errorf("got:%s\nwant:%s", got, want)
	}

	s.scope.Kill9()
	check(t, s.rig.RemovePod(s.ctx, id))
	s.pod(rig.PodOptions{Namespace: "shop", Name: "unseen"})
}
