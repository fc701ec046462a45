//go:build linux

package scenarios

import (
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// stays starts a pod, and returns its sandbox, network namespace and address.
func (s *scene) stays(o rig.PodOptions) (id, netns, ip string) {
	s.Helper()
	o.Namespace = "shop"
	id = harness.Must(s.rig.RunPod(s.ctx, o))(s.T)
	status := harness.Must(s.rig.PodStatus(s.ctx, id))(s.T)
	return id, regexp.MustCompile(`/[^"]*/netns/[^"]*`).FindString(fmt.Sprint(status.Info)), status.Status.Network.Ip
}

// connects makes the first connection to a pod.
func connects(t *testing.T, netns, ip string) {
	t.Helper()
	conn := harness.Must(net.Dial("tcp", listen(t, netns, ip).Addr().String()))(t)
	conn.Close()
}

// logged waits for a line of the log about a pod's first connection.
func (s *scene) logged(came, pod string) (line string) {
	s.Helper()
	harness.Until(s, "it is logged", func() bool {
		line = strings.Join(lines(s.scope.LogText(), "a pod's first connection "+came+`" pod=shop/`+pod+" "), "")
		return line != ""
	})
	return line
}

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
		_, netns, ip := s.stays(rig.PodOptions{Name: pod})
		if pod == "late" {
			s.call(pod)
		}
		connects(t, netns, ip)
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
