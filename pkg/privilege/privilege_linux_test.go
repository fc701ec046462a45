package privilege

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

// beVictim makes this program call nothing, Drop or Hide instead of its tests.
const beVictim = "PRIVILEGE_TEST_VICTIM"

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(beVictim) {
	case "":
		os.Exit(m.Run())
	case "drop":
		_, err = Drop(false)
	case "drop with the network":
		_, err = Drop(true)
	case "drop all but the network":
		err = DropButNetwork()
	case "hide":
		err = Hide()
	}
	fmt.Println("ready:", err)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func TestOthersOfTheSameUserReadNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: becomes other users")
	}
	const user = 60947
	for _, test := range []struct {
		does string
		uid  uint32
		open bool
	}{{"nothing", user, true}, {"hide", user, false}, {"drop", 0, false}, {"drop with the network", 0, false}, {"drop all but the network", 0, false}} {
		t.Run(test.does, func(t *testing.T) {
			victim := exec.CommandContext(t.Context(), "/proc/self/exe")
			victim.Env = []string{beVictim + "=" + test.does}
			victim.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: test.uid, Gid: test.uid}}
			in, _ := victim.StdinPipe()
			out, _ := victim.StdoutPipe()
			harness.Check(t, victim.Start())
			defer victim.Wait() //nolint:errcheck // it only waits
			defer in.Close()
			if said, err := bufio.NewReader(out).ReadString('\n'); said != "ready: <nil>\n" {
				t.Fatalf("%q, %v", said, err)
			}
			for what, reads := range map[string]string{
				"root": "ls /proc/%d/root/", "environment": "grep -q VICTIM /proc/%d/environ", "memory": "exec 3< /proc/%d/mem",
				"files": "readlink /proc/%d/fd/1", "maps": "test -n \"$(cat /proc/%d/maps)\"",
				"folder": "ls /proc/%d/cwd/",
			} {
				attacker := exec.CommandContext(t.Context(), "setpriv", "--reuid", fmt.Sprint(test.uid), "--regid",
					fmt.Sprint(test.uid),
					"--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "sh", "-c", fmt.Sprintf(reads,
						victim.Process.Pid))
				if said, err := attacker.CombinedOutput(); (err == nil) != test.open {
					t.Errorf("its %s: %v: %s", what, err, said)
				}
			}
		})
	}
	// Programs that their user cannot read are hidden from the start, such as the image's.
	t.Run("a program that cannot be read", func(t *testing.T) {
		for mode, want := range map[os.FileMode]uint32{0o755: user, 0o711: 0} {
			harness.Equal(t, ownerRunning(t, mode, user), want, "with mode", mode, "its files in /proc are of user")
		}
	})
}

// ownerRunning returns the owner of a running program's files in /proc: root if it is hidden.
func ownerRunning(t *testing.T, mode os.FileMode, user uint32) uint32 {
	t.Helper()
	dir := harness.Must(os.MkdirTemp("", "hidden"))(t) // t.TempDir is only for root
	defer os.RemoveAll(dir)
	harness.Check(t, os.Chmod(dir, 0o755))
	sleep := harness.Must(os.ReadFile("/bin/sleep"))(t)
	harness.Check(t, os.WriteFile(dir+"/sleep", sleep, mode))
	c := exec.CommandContext(t.Context(), dir+"/sleep", "600")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	if err := c.Start(); err != nil { // returns after the exec
		t.Fatal(err)
	}
	defer c.Wait()         //nolint:errcheck // it is killed
	defer c.Process.Kill() //nolint:errcheck // as above
	var is unix.Stat_t
	harness.Check(t, unix.Stat(fmt.Sprintf("/proc/%d/environ", c.Process.Pid), &is))
	return is.Uid
}
