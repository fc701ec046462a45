//go:build linux

package doctor

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func TestNRIThatIsSwitchedOffIsFound(t *testing.T) {
	n := newNode(t, rig.Options{NRIDisabled: true})
	n.finds("nri", doctor.Warning, "NRI is off", n.rig.NRISocket(), "disable = false", "systemctl restart containerd")

	// A stale socket is not NRI.
	harness.Check(t, os.MkdirAll(filepath.Dir(n.rig.NRISocket()), 0o755))
	l := harness.Must(net.ListenUnix("unix", &net.UnixAddr{Name: n.rig.NRISocket(), Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	harness.Check(t, l.Close())
	n.finds("nri", doctor.Warning, "no process listens", n.rig.NRISocket())
}

func TestACniscopeThatIsNotRegisteredIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	s := scope.Observe(n.ctx, t, n.rig, scope.Options{Program: program, NoNRI: true})
	n.finds("nri", doctor.Warning, "is not registered", "process")
	harness.Check(t, s.Stop())
	n.finds("nri", doctor.Note, "cniscope does not run on this node")

	scope.Observe(n.ctx, t, n.rig, scope.Options{Program: program})
	n.silent("nri")
}
