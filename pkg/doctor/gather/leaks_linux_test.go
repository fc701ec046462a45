package gather

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// A zombie keeps its cgroup's name in cgroup v2, also without the cgroup.
func TestAZombieKeepsNoSandboxAlive(t *testing.T) {
	harness.Root(t)
	id := strings.Repeat("ab12", 16)
	pid := sleeps(t, groupOf(t, id), 0)
	lives := func() bool {
		alive := map[string]bool{}
		harness.Check(t, bearers(alive))
		return alive[id]
	}
	if !lives() {
		t.Error("a sandbox in which a process runs is not alive")
	}
	harness.Check(t, unix.Kill(pid, unix.SIGKILL))
	harness.Check(t, unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	if lives() {
		t.Errorf("a zombie keeps it alive: %s", procfs.Groups(pid))
	}
}
