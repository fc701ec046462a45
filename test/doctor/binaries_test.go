//go:build linux

package doctor

import (
	"debug/elf"
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
	foreign := harness.Must(os.ReadFile(filepath.Join(n.rig.CNIBinDir(), "portmap")))(t)
	foreign[18], foreign[19] = byte(elf.EM_XTENSA), 0 // e_machine
	harness.Check(t, n.rig.AddPlugin("portmap", foreign))
	n.finds("cni-binaries", doctor.Problem, "portmap cannot be run", "portmap is built for xtensa, this node is ", "replace ")
	harness.Check(t, n.rig.AddPlugin("portmap", nil))
	n.finds("cni-binaries", doctor.Problem, "portmap is empty")
	harness.Check(t, os.Remove(filepath.Join(n.rig.CNIBinDir(), "portmap")))
	harness.Check(t, os.WriteFile(filepath.Join(n.rig.CNIBinDir(), "portmap"), []byte("x"), 0o644))
	n.finds("cni-binaries", doctor.Problem, "portmap is not executable (mode -rw-r--r--)", "chmod 755 ")
}
