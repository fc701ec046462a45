//go:build linux

package scenarios

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func dialWithin(t *testing.T, netns, address string) {
	t.Helper()
	harness.Check(t, harness.Within(netns, func() error {
		c, err := net.DialTimeout("tcp", address, 2*time.Second)
		if err != nil {
			return nil
		}
		c.Close()
		return fmt.Errorf("a process listens there")
	}))
}

// A late first connection is reported with the kernel's evidence: ARP, a refusal, no attempt.
func TestWhyAFirstConnectionWasLate(t *testing.T) {
	const late = "a pod's first connection came late"
	s := set(t, rig.Options{}, "[slow]\nfirst_connection = \"3s\"\n")
	network := s.network("pods", rig.Bridge())
	gateway := network.Subnet.Addr().Next()
	nobody := gateway.Next()
	for range 100 { // unused
		nobody = nobody.Next()
	}
	for _, c := range []struct {
		pod, cause, says string
		tries            func(netns string)
	}{
		{"prompt-0", "", "", nil},
		{"idle-0", "cause=idle", "tried no connection before", func(string) {}},
		{"arp-0", "cause=arp", nobody.String() + " did not answer ARP", func(netns string) { dialWithin(t, netns, net.JoinHostPort(nobody.String(), "80")) }},
		{"refused-0", "cause=refused", "failed at once", func(netns string) {
			for range 3 {
				dialWithin(t, netns, net.JoinHostPort(gateway.String(), "9"))
			}
		}},
	} {
		t.Run(c.pod, func(t *testing.T) {
			_, netns, ip := s.stays(rig.PodOptions{Name: c.pod})
			began := time.Now()
			if c.tries != nil {
				c.tries(netns)
				time.Sleep(time.Until(began.Add(4 * time.Second))) // makes the connection late
			}
			connects(t, netns, ip)
			if c.tries == nil {
				s.call(c.pod)
				if said := lines(s.scope.LogText(), late); len(said) > 0 {
					t.Errorf("%s", said)
				}
				return
			}
			harness.Says(t, s.logged("came late", c.pod), c.cause, c.says)
		})
	}
}
