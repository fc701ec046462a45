package probe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// callingRuntime calls plugins on demand, as a container runtime does.
type callingRuntime struct {
	cmd   *exec.Cmd
	start io.Closer
}

func manyCalls() (calls, atOnce int) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return n
		}
		return otherwise
	}
	return number("CNISCOPE_TEST_CALLS", 48), number("CNISCOPE_TEST_AT_ONCE", 16)
}

// startRuntime starts a runtime of its own process: a fork blocks the threads of a Go process.
func startRuntime(t *testing.T, calls, atOnce int) *callingRuntime {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{
		"bridge":     "echo '{}' | " + dir + "/host-local; iptables -t nat -S >/dev/null 2>&1; ip link show lo >/dev/null; exit 0",
		"host-local": "cat >/dev/null; exit 0",
	} {
		harness.Check(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	r := &callingRuntime{cmd: acting(t, "runtime", fmt.Sprint(calls, " ", atOnce, " ", dir, " ", container))}
	r.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), r.cmd.Env[len(r.cmd.Env)-1]} // it is no plugin itself
	var err error
	if r.start, err = r.cmd.StdinPipe(); err == nil {
		err = r.cmd.Start()
	}
	harness.Check(t, err)
	t.Cleanup(func() { _ = r.cmd.Process.Kill(); _ = r.cmd.Wait() })
	return r
}

func (r *callingRuntime) call(t *testing.T) {
	t.Helper()
	harness.Check(t, errors.Join(r.start.Close(), r.cmd.Wait()))
}

func runtimeAct(argument string) error {
	var calls, atOnce int
	var dir, container string
	if _, err := fmt.Sscan(argument, &calls, &atOnce, &dir, &container); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var all sync.WaitGroup
	room := make(chan bool, atOnce)
	for i := range calls {
		room <- true
		all.Go(func() {
			defer func() { <-room }()
			cmd := exec.Command(filepath.Join(dir, "bridge"))
			cmd.Stdin = strings.NewReader("{}")
			cmd.Env = []string{
				"PATH=" + os.Getenv("PATH"), "CNI_COMMAND=" + []string{"ADD", "DEL"}[i%2],
				"CNI_CONTAINERID=" + container, "CNI_IFNAME=eth0", "CNI_PATH=" + dir,
			}
			_ = cmd.Run()
		})
	}
	all.Wait()
	return nil
}

func actCommand(t testing.TB, act string) []string {
	t.Helper()
	self := harness.Must(os.Executable())(t)
	name := filepath.Join(t.TempDir(), act)
	harness.Check(t, os.Symlink(self, name))
	return []string{name}
}
