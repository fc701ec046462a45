//go:build linux

package rig

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Daemon is a program that runs beside the rig's containerd.
type Daemon struct{ d *daemon }

// Beside starts a program of the rig with exactly this environment, a log of its name, and returns once ready
// succeeds. It must be stopped before the rig closes; a killed owner's rig removes it.
func (r *Rig) Beside(ctx context.Context, name string, env, command []string, ready func(context.Context) error) (*Daemon, error) {
	d, err := startDaemon(name, r.at(name+".log"), append([]string{r.Env()}, env...), command[0], command[1:]...)
	if err != nil {
		return nil, err
	}
	if err := d.await(ctx, r.opts.Ready, ready); err != nil {
		d.kill9()
		return nil, err
	}
	return &Daemon{d}, nil
}

// Stop terminates the program, and kills it after ten seconds.
func (d *Daemon) Stop() { d.d.stop(10 * time.Second) }

// Log is the file of its output.
func (d *Daemon) Log() string { return d.d.log }

// Inside returns a command prefix that runs in a copy of containerd's mount namespace.
func (r *Rig) Inside(script string) ([]string, error) {
	pid := r.ContainerdPID()
	if pid == 0 {
		return nil, errors.New("containerd does not run")
	}
	return []string{
		"nsenter", "--mount=/proc/" + strconv.Itoa(pid) + "/ns/mnt",
		"unshare", "--mount", "--propagation", "unchanged",
		"/bin/sh", "-ec", script + "\nexec \"$@\"", "sh",
	}, nil
}

// PID is its process id.
func (d *Daemon) PID() int { return d.d.cmd.Process.Pid }
