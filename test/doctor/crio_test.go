//go:build linux

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func TestANodeOfCRIO(t *testing.T) {
	if _, err := rig.Tools("crio/crio"); err != nil {
		t.Skip(err)
	}
	n := newNode(t, rig.Options{CRIO: true})
	n.toml = strings.ReplaceAll(n.toml, "conf_dir = \""+n.rig.CNIConfDir()+"\"", "conf_dir = \"/nowhere\"")
	socket := n.rig.Socket() // named crio.sock, so that doctor recognizes it while CRI-O is down
	n.silent("runtime", "cni-folder", "cni-binaries", "cni-version", "cni-order", "network-ready", "network-pods")

	file := filepath.Join(n.rig.CNIBinDir(), "bridge")
	harness.Check(t, os.Rename(file, file+".away"))
	n.finds("cni-binaries", doctor.Problem, "bridge cannot be run", "it is not in "+n.rig.CNIBinDir())
	harness.Check(t, os.Rename(file+".away", file))
	n.silent("cni-binaries")

	write(t, filepath.Join(n.rig.CNIConfDir(), "00-bad.conflist"), "{")
	n.finds("cni-folder", doctor.Note, "00-bad.conflist")
	n.rig.Kill9Containerd()
	n.finds("runtime", doctor.Problem, "CRI-O does not answer", socket, "systemctl restart crio")
	for _, f := range n.examine().Findings {
		for _, said := range append(append([]string{f.Summary}, f.Evidence...), f.Remedy...) {
			if strings.Contains(said, "containerd") {
				t.Errorf("%s: %q", f.Check, said)
			}
		}
	}
}
