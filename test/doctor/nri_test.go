//go:build linux

package doctor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func TestNRIThatIsSwitchedOffIsFound(t *testing.T) {
	n := newNode(t, rig.Options{NRIDisabled: true})
	n.finds("nri", doctor.Warning, "NRI is off", n.rig.NRISocket(), "disable = false", "systemctl restart containerd")

	// A socket that is left behind is no NRI.
	check(t, os.MkdirAll(filepath.Dir(n.rig.NRISocket()), 0o755))
	n.run("python3", "-c", "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])", n.rig.NRISocket())
	n.finds("nri", doctor.Warning, "nobody listens", n.rig.NRISocket())
}

func TestACniscopeThatIsNotRegisteredIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	s, err := scope.Start(n.ctx, n.rig, scope.Options{Program: program, NoNRI: true})
	check(t, err)
	n.finds("nri", doctor.Warning, "is not registered", "process")
	check(t, s.Stop())
	n.finds("nri", doctor.Note, "no cniscope observes this node")

	s, err = scope.Start(n.ctx, n.rig, scope.Options{Program: program})
	check(t, err)
	t.Cleanup(func() { check(t, s.Stop()) })
	n.silent("nri")
}
