package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

// beReader makes this program cniscope-reader.
const beReader = "READER_TEST_BE_READER"

func TestMain(m *testing.M) {
	if os.Getenv(beReader) != "" {
		os.Exit(execute())
	}
	os.Exit(m.Run())
}

// A process of the sidecar's user in the same PID namespace (hostPID) reaches neither its token nor its memory.
func TestItsTokenAndSocketAreItsOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: becomes other users")
	}
	const user = 60947
	// Mounts in the sidecar's namespace are reachable through /proc/PID/root only.
	c := exec.CommandContext(t.Context(), "unshare", "-m", "sh", "-ec", `
				mount -t tmpfs -o mode=755 tmpfs /mnt
				echo SECRET > /mnt/token
				cp "$0" /mnt/reader
				exec setpriv --reuid 60947 --regid 60947 --clear-groups --bounding-set=-all /mnt/reader serve`, os.Args[0])
	c.Env = append(os.Environ(), beReader+"=1")
	harness.Check(t, c.Start())
	defer c.Wait()         //nolint:errcheck // it is killed
	defer c.Process.Kill() //nolint:errcheck // as above
	proc := fmt.Sprintf("/proc/%d/", c.Process.Pid)
	harness.Eventually(t, func() error {
		var environ unix.Stat_t
		program, _ := os.ReadFile(proc + "comm")
		if err := unix.Stat(proc+"environ", &environ); err != nil || string(program) != "reader\n" || environ.Uid != 0 {
			return fmt.Errorf("%s, which should be a hidden reader: its environment is user %d's, %w", program, environ.Uid, err)
		}
		return nil
	})
	for what, reads := range map[string]string{
		"token": "cat PROC/root/mnt/token", "environment": "cat PROC/environ",
		"memory": "exec 3< PROC/mem", "program": "readlink PROC/exe",
	} {
		script := strings.ReplaceAll(reads, "PROC/", proc)
		if what != "memory" { // root can, so the test is meaningful
			harness.Check(t, exec.CommandContext(t.Context(), "sh", "-c", script).Run())
		}
		attacker := exec.CommandContext(t.Context(), "setpriv", "--reuid", fmt.Sprint(user), "--regid", fmt.Sprint(user),
			"--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "sh", "-c", script)
		if said, err := attacker.CombinedOutput(); err == nil {
			t.Errorf("its user reads its %s: %s", what, said)
		}
	}
}
