package harness

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/test/tied"
)

// Machine is a systemd in namespaces.
type Machine struct {
	*testing.T
	cmd   *exec.Cmd
	enter []string
}

// Boot starts a command that becomes systemd. enter are nsenter's further arguments.
func Boot(t *testing.T, cmd *exec.Cmd, namespaces uintptr, enter ...string) *Machine {
	t.Helper()
	m := &Machine{T: t, cmd: cmd, enter: enter}
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | namespaces,
		Setsid:     true,
	}
	Check(t, tied.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // the first process of a PID namespace takes the others along
		_ = cmd.Wait()
	})
	m.Becomes("systemctl is-system-running --wait || true; systemctl show -p Version", "Version=")
	return m
}

// Root is the root directory that the machine's processes see.
func (m *Machine) Root() string { return filepath.Join("/proc", fmt.Sprint(m.cmd.Process.Pid), "root") }

// Try runs a script in the machine.
func (m *Machine) Try(script string) (string, error) {
	args := slices.Concat([]string{"-t", fmt.Sprint(m.cmd.Process.Pid), "-m", "-p", "-C", "-i", "-u"}, m.enter, []string{"timeout", "120", "/bin/sh", "-ec", script})
	out, err := exec.Command("nsenter", args...).CombinedOutput()
	return string(out), err
}

// Runs is Try for a script that must not fail.
func (m *Machine) Runs(script string) string {
	m.Helper()
	out, err := m.Try(script)
	if err != nil {
		m.Fatalf("%s: %v\n%s", script, err, out)
	}
	return out
}

// Says checks the output of a script for texts.
func (m *Machine) Says(script string, want ...string) string {
	m.Helper()
	out := m.Runs(script)
	Says(m, out, want...)
	return out
}

// Write writes a file of the machine.
func (m *Machine) Write(path, text string) {
	m.Helper()
	m.Runs(fmt.Sprintf("mkdir -p %s; cat >%s <<'end of it'\n%send of it\n", filepath.Dir(path), path, text))
}

// Becomes waits until the output of a script has texts.
func (m *Machine) Becomes(script string, want ...string) {
	m.Helper()
	Eventually(m, func() error {
		out, err := m.Try(script)
		for _, w := range want {
			err = errors.Join(err, Contains(out, w))
		}
		return err
	})
}
