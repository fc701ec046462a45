//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// A daemon is a background process with a log file.
type daemon struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed after its exit
}

// startDaemon gives the command its own process group: Ctrl-C must not stop the runtime first.
func startDaemon(name, log string, env []string, command string, args ...string) (*daemon, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer out.Close()
	if program, err := os.Open(command); err == nil { // the time until it is ready is not that of a cold disk
		_, err = io.Copy(io.Discard, program)
		if err = errors.Join(err, program.Close()); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	cmd := exec.Command(command, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	d := &daemon{name: name, log: log, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the result is in cmd.ProcessState
		close(d.done)
	}()
	return d, nil
}

func (d *daemon) running() bool {
	if d == nil {
		return false
	}
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// await polls ready until it succeeds, the daemon exits, or the timeout.
func (d *daemon) await(ctx context.Context, timeout time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	var last error
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err // more informative than the timeout
		}
		select {
		case <-d.done:
			return fmt.Errorf("%s ended (%s) before it was ready; its log ends with:\n%s", d.name, d.cmd.ProcessState, tail(d.log))
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready after %s: %w; its log ends with:\n%s", d.name, timeout, last, tail(d.log))
		case <-poll.C:
		}
	}
}

func (d *daemon) kill9() {
	if d.running() {
		_ = d.cmd.Process.Kill()
		<-d.done
	}
}

func (d *daemon) stop(patience time.Duration) {
	if !d.running() {
		return
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-d.done:
	case <-time.After(patience):
		d.kill9()
	}
}

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}
