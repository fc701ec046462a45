//go:build linux

package doctor

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func TestContainerdThatDoesNotRunIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	n.silent("runtime")
	n.rig.Kill9Containerd()
	n.finds("runtime", doctor.Problem, "does not answer", n.rig.Socket())
	harness.Check(t, n.rig.RestartContainerd(n.ctx))
	n.silent("runtime")
}
