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

func TestAPluginThatCannotBeRunIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	for _, name := range []string{"bridge", "portmap", "host-local", "loopback"} {
		t.Run(name, func(t *testing.T) {
			n := *n
			n.T = t
			file := filepath.Join(n.rig.CNIBinDir(), name)
			harness.Check(t, os.Rename(file, file+".away"))
			n.finds("cni-binaries", doctor.Problem, name+" cannot be run", "it is not in "+n.rig.CNIBinDir(), "reference plugins")
			harness.Check(t, os.Rename(file+".away", file))
			n.silent("cni-binaries")
		})
	}
	harness.Check(t, n.rig.AddPlugin("portmap", nil))
	n.finds("cni-binaries", doctor.Problem, "portmap is empty")
	harness.Check(t, os.Remove(filepath.Join(n.rig.CNIBinDir(), "portmap")))
	harness.Check(t, os.WriteFile(filepath.Join(n.rig.CNIBinDir(), "portmap"), []byte("x"), 0o644))
	n.finds("cni-binaries", doctor.Problem, "portmap is not executable (mode -rw-r--r--)", "chmod 755 ")
}
