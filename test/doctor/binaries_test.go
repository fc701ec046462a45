//go:build linux

package doctor

import (
	"bytes"
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
	harness.Check(t, n.rig.AddPlugin("portmap", nil))
	n.finds("cni-binaries", doctor.Problem, "portmap is empty")
	harness.Check(t, os.Remove(filepath.Join(n.rig.CNIBinDir(), "portmap")))
	harness.Check(t, os.WriteFile(filepath.Join(n.rig.CNIBinDir(), "portmap"), []byte("x"), 0o644))
	n.finds("cni-binaries", doctor.Problem, "portmap is not executable (mode -rw-r--r--)", "chmod 755 ")

	bridge, err := os.ReadFile(filepath.Join(n.rig.CNIBinDir(), "bridge"))
	harness.Check(t, err)
	foreign := bytes.Clone(bridge)
	foreign[18], foreign[19] = byte(elf.EM_XTENSA), 0 // e_machine
	for says, content := range map[string][]byte{
		"portmap is built for xtensa, this node is ":                           foreign,
		"portmap needs the interpreter /nowhere/python3, which does not exist": []byte("#!/nowhere/python3\n"),
		"portmap is neither a program nor a script":                            []byte("<html>404</html>"),
	} {
		harness.Check(t, n.rig.AddPlugin("portmap", content))
		n.finds("cni-binaries", doctor.Problem, "portmap cannot be run", says)
	}
	for _, content := range [][]byte{bridge, []byte("#!/bin/sh\nexec /nowhere/portmap\n")} { // what it runs is its own affair
		harness.Check(t, n.rig.AddPlugin("portmap", content))
		n.silent("cni-binaries")
	}
}
