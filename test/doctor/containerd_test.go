//go:build linux

package doctor

import (
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func TestContainerdThatDoesNotRunIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	n.silent("runtime")
	n.rig.Kill9Containerd()
	f := n.finds("runtime", doctor.Problem, "does not answer", n.rig.Socket(), "no process listens there", "systemctl restart containerd")
	if said := strings.Join(f.Evidence, ""); strings.Contains(said, "folder") {
		t.Errorf("its folder is as it was: %s", said)
	}
	harness.Check(t, n.rig.RestartContainerd(n.ctx))
	n.silent("runtime")
}
