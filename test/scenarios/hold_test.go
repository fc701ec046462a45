//go:build linux

package scenarios

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// A lock is held until two seconds after another process waits for it.
func TestALockIsHeldUntilItIsWaitedFor(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	waited := waitedFor(t, file)
	end := holdFor(&scene{T: t}, file, waited)
	defer end()
	if waited() {
		t.Fatal("no process waits for the lock yet")
	}
	waiter := exec.Command("flock", file, "true")
	harness.Check(t, waiter.Start())
	harness.Until(t, "a process waits for the lock", waited)
	harness.Check(t, waiter.Wait())
	if waited() {
		t.Error("a process still waits for the lock")
	}
}
