//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cniscope/cniscope/test/tied"
)

// tracer is another program that watches, and its output.
type tracer struct {
	cmd  *exec.Cmd
	done chan struct{}
	errs string
}

// execsnoop prints every exec of the machine. Containers are often without tracefs: it is
// mounted where nobody else sees it.
func (n *node) execsnoop(ctx context.Context) (func() error, error) {
	script, err := exec.LookPath("execsnoop.bt")
	if err != nil {
		return nil, fmt.Errorf("%w: run `make debian-bench`", err)
	}
	out := filepath.Join(n.rig.Dir(), "execsnoop")
	t, err := n.trace(out, "unshare", "--mount", "sh", "-c",
		`[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing; exec bpftrace "$@"`,
		"sh", "-q", "-B", "line", "-o", out, script)
	if err != nil {
		return nil, err
	}
	return t.stop, t.ready(ctx, func() bool {
		_ = exec.CommandContext(ctx, "true", "canary").Run()
		return contains(out, "canary")
	})
}

// strace follows containerd of the rig, and what that starts.
func (n *node) strace(ctx context.Context) (func() error, error) {
	out := filepath.Join(n.rig.Dir(), "strace")
	t, err := n.trace(out, "strace", "-f", "-o", out, "-p", fmt.Sprint(n.rig.ContainerdPID()))
	if err != nil {
		return nil, fmt.Errorf("%w: run `make debian-bench`", err)
	}
	return t.stop, t.ready(ctx, func() bool { return contains(t.errs, " attached") })
}

func (n *node) trace(out string, command ...string) (*tracer, error) {
	t := &tracer{cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{}), errs: out + ".errors"}
	_ = os.Remove(out) // of the time before
	errs, err := os.Create(t.errs)
	if err != nil {
		return nil, err
	}
	defer errs.Close()
	t.cmd.Env = append(os.Environ(), n.rig.Env())
	t.cmd.Stdout, t.cmd.Stderr = errs, errs
	if err := tied.Start(t.cmd); err != nil {
		return nil, err
	}
	go func() {
		_ = t.cmd.Wait() // by the signal that it is sent
		close(t.done)
	}()
	return t, nil
}

// ready waits until the tracer sees what happens.
func (t *tracer) ready(ctx context.Context, sees func() bool) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if sees() {
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	said, _ := os.ReadFile(t.errs)
	_ = t.stop()
	return fmt.Errorf("it does not watch after 30 s:\n%s", said)
}

// stop ends it as a user would, and waits until it has let go.
func (t *tracer) stop() error {
	_ = t.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-t.done:
		return nil
	case <-time.After(30 * time.Second):
		_ = t.cmd.Process.Kill()
		return fmt.Errorf("%s did not end within 30 s", t.cmd.Path)
	}
}

func contains(file, text string) bool {
	b, _ := os.ReadFile(file) // not there yet is without it
	return bytes.Contains(b, []byte(text))
}
