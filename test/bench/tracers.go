//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/tied"
)

// tracer is another observing program with its output.
type tracer struct {
	cmd       *exec.Cmd
	done      chan struct{}
	out, errs string
}

// execsnoop prints every exec of the machine.
func (n *node) execsnoop(ctx context.Context) (watcher, error) {
	script, err := exec.LookPath("execsnoop.bt")
	if err != nil {
		return nil, fmt.Errorf("%w: run `make debian-bench`", err)
	}
	return n.traceExecs(ctx, "execsnoop", "bpftrace", "-q", "-B", "line", script)
}

// inspektorGadget prints every exec of the machine with its container.
func (n *node) inspektorGadget(ctx context.Context) (watcher, error) {
	bin, err := rig.Tools("ig")
	if err != nil {
		return nil, fmt.Errorf("%w: run `make tools-inspektor-gadget`", err)
	}
	// --host: CNI plugins are in no container.
	return n.traceExecs(ctx, "ig", filepath.Join(bin, "ig"), "trace", "exec", "--host", "--output", "json",
		"--auto-mount-filesystems", "--runtimes", "containerd", "--containerd-socketpath", n.rig.Socket())
}

// traceExecs starts an exec tracer. Containers often lack tracefs: it is mounted in a private namespace.
func (n *node) traceExecs(ctx context.Context, name string, command ...string) (watcher, error) {
	t, err := n.trace(name, append([]string{
		"unshare", "--mount", "sh", "-c",
		`[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"`, "sh",
	}, command...)...)
	if err != nil {
		return nil, err
	}
	return t, t.ready(ctx, func() bool {
		_ = exec.CommandContext(ctx, "true", "canary").Run()
		return contains(t.out, "canary")
	})
}

// strace follows the rig's containerd and its children.
func (n *node) strace(ctx context.Context) (watcher, error) {
	out := filepath.Join(n.rig.Dir(), "strace.lines")
	t, err := n.trace("strace", "strace", "-f", "-o", out, "-p", fmt.Sprint(n.rig.ContainerdPID()))
	if err != nil {
		return nil, fmt.Errorf("%w: run `make debian-bench`", err)
	}
	t.out = out
	return t, t.ready(ctx, func() bool { return contains(t.errs, " attached") })
}

// trace starts a tracer with its own output file.
func (n *node) trace(name string, command ...string) (*tracer, error) {
	file := filepath.Join(n.rig.Dir(), name)
	t := &tracer{cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{}), out: file + ".out", errs: file + ".errors"}
	out, err := os.Create(t.out)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	errs, err := os.Create(t.errs)
	if err != nil {
		return nil, err
	}
	defer errs.Close()
	t.cmd.Env = append(os.Environ(), n.rig.Env())
	t.cmd.Stdout, t.cmd.Stderr = out, errs
	if err := tied.Start(t.cmd); err != nil {
		return nil, err
	}
	go func() {
		_ = t.cmd.Wait() // exits by the signal
		close(t.done)
	}()
	return t, nil
}

// ready waits until the tracer observes.
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
	_ = t.Stop()
	return fmt.Errorf("it does not watch after 30 s:\n%s", said)
}

func (t *tracer) PID() int { return t.cmd.Process.Pid }

// Stop interrupts it and waits for its cleanup.
func (t *tracer) Stop() error {
	_ = t.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-t.done:
		return nil
	case <-time.After(30 * time.Second):
		_ = t.cmd.Process.Kill()
		return fmt.Errorf("%s did not end within 30 s", t.cmd.Path)
	}
}

// Told counts its lines, and those with a name.
func (t *tracer) Told(name *regexp.Regexp) (lines, naming int, err error) {
	f, err := os.Open(t.out)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for r := bufio.NewReader(f); ; lines++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return lines, naming, nil
		}
		if err != nil {
			return 0, 0, err
		}
		if name.Match(line) {
			naming++
		}
	}
}

func contains(file, text string) bool {
	b, _ := os.ReadFile(file) // possibly not created
	return bytes.Contains(b, []byte(text))
}
