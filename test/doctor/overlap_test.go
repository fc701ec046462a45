//go:build linux

package doctor

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/rig"
)

func TestAPodSubnetThatIsTheNodesToo(t *testing.T) {
	n := newNode(t, rig.Options{})
	pods := n.rig.Networks()[0].Subnet
	s := newScene(t, n)
	s.inside("ip", "link", "set", "eth0", "up")
	s.inside("ip", "addr", "add", "203.0.113.7/24", "dev", "eth0")
	// The CNI's own bridge and its routes to other nodes do not overlap.
	s.inside("ip", "link", "add", n.rig.Networks()[0].Bridge, "type", "bridge")
	s.inside("ip", "addr", "add", pods.Addr().Next().String()+"/24", "dev", n.rig.Networks()[0].Bridge)
	s.inside("ip", "route", "add", pods.Addr().String()+"/25", "via", "203.0.113.1", "dev", "eth0")
	s.silent("overlap")

	s.inside("ip", "addr", "add", pods.Addr().Next().String()+"/16", "dev", "eth0")
	s.finds("overlap", doctor.Warning, "the pods' subnet "+pods.String()+" overlaps the node's network", "comes from network "+n.rig.Networks()[0].Name, "interface eth0 has "+pods.Addr().Next().String()+"/16", "--pod-network-cidr")
}
