//go:build linux

package scenarios

import (
	"fmt"
	"net"
	"regexp"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func listen(t *testing.T, netns, address string) (l net.Listener) {
	t.Helper()
	harness.Check(t, harness.Within(netns, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	}))
	t.Cleanup(func() { l.Close() })
	return l
}

// A first connection is on the call while that is open, later on its own span.
func TestTheFirstConnectionOfAPod(t *testing.T) {
	s := set(t, rig.Options{}, "")
	s.network("pods", rig.Bridge())
	silent := s.add(rig.PodOptions{}, false)
	for _, pod := range []string{"early", "late"} {
		id := harness.Must(s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: pod}))(t)
		if pod == "late" {
			s.call(pod)
		}
		status := harness.Must(s.rig.PodStatus(s.ctx, id))(t)
		netns := regexp.MustCompile(`/[^"]*/netns/[^"]*`).FindString(fmt.Sprint(status.Info))
		c := harness.Must(net.Dial("tcp", listen(t, netns, status.Status.Network.Ip).Addr().String()))(t)
		c.Close()
		harness.Eventually(s, func() error {
			call := s.call(pod)
			after := call.Ms("cniscope.first_connection_ms")
			for _, x := range call.Below("first_connection") {
				after = x.Ms("cniscope.first_connection_ms")
			}
			if after <= 0 || after > 60_000 {
				return fmt.Errorf("%s: the first connection came %f ms after", pod, after)
			}
			t.Logf("%s: the first connection came %f ms after", pod, after)
			return nil
		})
	}
	silent = s.call(silent.Attrs["k8s.pod.name"])
	if n := len(silent.Below("first_connection")); n > 0 || silent.Attrs["cniscope.first_connection_ms"] != "" {
		t.Error("a pod that was silent had a connection")
	}
}
