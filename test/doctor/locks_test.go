//go:build linux

package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func TestWhoHoldsALockThatOthersWaitFor(t *testing.T) {
	n := newNode(t, rig.Options{})
	net := n.rig.Networks()[0]
	lock := filepath.Join(net.DataDir, net.Name, "lock")
	harness.Check(t, os.MkdirAll(filepath.Dir(lock), 0o755))
	flock := n.copied("/usr/bin/flock", "holder")
	n.start("holder", flock, lock, "sleep", "60")
	harness.Until(n, "it has the lock", func() bool { // held by now
		return exec.Command("flock", "--nonblock", lock, "true").Run() != nil
	})
	n.silent("locks")
	n.start("waiter", n.copied("/usr/bin/flock", "waiter"), lock, "true")
	harness.Until(n, "the lock is named", func() bool { return len(of(n.examine(), "locks")) > 0 })
	n.finds("locks", doctor.Warning, lock, "(holder)", "waiting: process", "(waiter)", "/proc/locks")
}
