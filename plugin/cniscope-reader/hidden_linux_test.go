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
	for _, args := range [][]string{{"serve"}, {"ask", "node"}} {
		t.Run(args[0], func(t *testing.T) {
			// Mounts in the sidecar's namespace are reachable through /proc/PID/root only.
			c := exec.CommandContext(t.Context(), "unshare", append([]string{"-m", "sh", "-ec", `
				mount -t tmpfs -o mode=755 tmpfs /mnt
				echo SECRET > /mnt/token
				cp "$0" /mnt/reader
				exec setpriv --reuid 60947 --regid 60947 --clear-groups --bounding-set=-all /mnt/reader "$@"`, os.Args[0]}, args...)...)
			c.Env = append(os.Environ(), beReader+"=1")
			in, err := c.StdinPipe() // ask waits for a token
			harness.Check(t, err)
			harness.Check(t, c.Start())
			defer c.Wait() //nolint:errcheck // it is killed, or has no token
			defer in.Close()
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
				"memory": "exec 3< PROC/mem", "standard input": "cat PROC/fd/0", "program": "readlink PROC/exe",
			} {
				script := strings.ReplaceAll(reads, "PROC/", proc)
				if what != "memory" && what != "standard input" { // root can, so the test is meaningful
					harness.Check(t, exec.CommandContext(t.Context(), "sh", "-c", script).Run())
				}
				attacker := exec.CommandContext(t.Context(), "setpriv", "--reuid", fmt.Sprint(user), "--regid", fmt.Sprint(user),
					"--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "sh", "-c", script)
				if said, err := attacker.CombinedOutput(); err == nil {
					t.Errorf("%s: its user reads its %s: %s", args[0], what, said)
				}
			}
		})
	}
}
