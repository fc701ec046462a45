//go:build linux

package doctor

import (
	"fmt"
	"os"
	"path/filepath"
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
	f := n.finds("runtime", doctor.Problem, "does not answer", n.rig.Socket(), "no process listens on this socket", "systemctl restart containerd")
	if said := strings.Join(f.Evidence, ""); strings.Contains(said, "CNI directory") {
		t.Errorf("its directory is as it was: %s", said)
	}
	harness.Check(t, n.rig.RestartContainerd(n.ctx))
	n.silent("runtime")
}

// A CRI plugin that did not start for want of inotify instances, which a user namespace limits for itself, and one that
// did not for another reason.
func TestACRIPluginThatDidNotStartIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	n.rig.StopContainerd()
	limited := []string{"unshare", "--user", "--map-root-user", "sh", "-c", `echo 0 >/proc/sys/user/max_inotify_instances && exec "$@"`, "sh"}
	harness.Check(t, n.rig.RestartBroken(n.ctx, limited...))
	f := n.finds("runtime", doctor.Problem, "did not start", "too many open files", "fs.inotify.max_user_instances=8192", "systemctl restart containerd")
	if said := fmt.Sprint(f); strings.Contains(said, "NOFILE") || strings.Contains(said, "ulimit") {
		t.Errorf("it names the limit of open files: %s", said)
	}
	n.rig.StopContainerd()

	harness.Check(t, os.RemoveAll(n.rig.CNIConfDir()))
	write(t, n.rig.CNIConfDir(), "a file")
	harness.Check(t, n.rig.RestartBroken(n.ctx))
	if f = n.finds("runtime", doctor.Problem, "did not start", "not a directory"); strings.Contains(fmt.Sprint(f), "inotify") {
		t.Errorf("it has the remedy of another cause: %+v", f)
	}
}

// A containerd whose configuration switches CRI off; NRI, which CRI starts, is no finding of its own.
func TestACRIThatIsSwitchedOffIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	n.rig.StopContainerd()
	off := filepath.Join(n.rig.Dir(), "conf.d", "off.toml")
	write(t, off, "disabled_plugins = ['io.containerd.grpc.v1.cri']\n")
	harness.Check(t, n.rig.RestartBroken(n.ctx))
	n.finds("runtime", doctor.Problem, "CRI is switched off", "Unimplemented", "disabled_plugins", "systemctl restart containerd")
	if found := of(n.examine(), "nri"); len(found) > 0 {
		t.Errorf("%+v", found)
	}
	n.rig.StopContainerd()
	harness.Check(t, os.Remove(off))
	harness.Check(t, n.rig.RestartContainerd(n.ctx))
	n.silent("runtime")
}
