package gather

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// A zombie keeps its cgroup's name in cgroup v2, also without the cgroup.
func TestAZombieKeepsNoSandboxAlive(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making a cgroup takes root")
	}
	id := strings.Repeat("ab12", 16)
	dir := filepath.Join(harness.Unified(t), "cri-containerd-"+id+".scope")
	harness.Check(t, os.Mkdir(dir, 0o755))
	defer func() { _ = os.Remove(dir) }()
	group := harness.Must(os.Open(dir))(t)
	defer group.Close()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	harness.Check(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lives := func() bool {
		alive := map[string]bool{}
		harness.Check(t, bearers(alive))
		return alive[id]
	}
	if !lives() {
		t.Error("a sandbox in which a process runs is not alive")
	}
	harness.Check(t, cmd.Process.Kill())
	harness.Check(t, unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	if lives() {
		t.Errorf("a zombie keeps it alive: %s", procfs.Groups(cmd.Process.Pid))
	}
}
