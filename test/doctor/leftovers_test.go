//go:build linux

package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func TestWhatAnotherCNILeftBehindIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	s := newScene(t, n)
	s.silent("leftovers")
	s.inside("ip", "link", "add", "flannel.1", "type", "bridge")
	s.rules("iptables-nft", "FLANNEL-POSTRTG")
	s.finds("leftovers", doctor.Warning, "Flannel does not run here", "interface flannel.1", "nftables ip nat: 1 chain", "used: "+n.rig.Networks()[0].Name, "ip link delete flannel.1")

	// A CNI in use leaves no leftovers: its agent runs, or its network is loaded.
	agent := s.start("flanneld", "nsenter", "--net="+s.netns, s.named("flanneld"), "600")
	s.silent("leftovers")
	harness.Check(t, agent.Process.Kill())
	_ = agent.Wait()
	s.finds("leftovers", doctor.Warning, "Flannel")
	write(t, filepath.Join(n.rig.CNIConfDir(), "05-flannel.conflist"), `{"cniVersion":"1.0.0","name":"cbr0","plugins":[{"type":"flannel"}]}`)
	s.silent("leftovers")
	harness.Check(t, os.Remove(filepath.Join(n.rig.CNIConfDir(), "05-flannel.conflist")))
}
