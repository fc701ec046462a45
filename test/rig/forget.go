//go:build linux

package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
)

// ForgetPods has containerd lose all that it knows of sandboxes, as one does whose state is wiped: their processes
// end, their records go, no DEL runs, and containerd begins anew.
func (r *Rig) ForgetPods(ctx context.Context, ids ...string) error {
	ctx = namespaces.WithNamespace(ctx, "k8s.io")
	c, err := client.New(r.Socket())
	if err != nil {
		return err
	}
	defer c.Close()
	for _, id := range ids {
		if err := c.ContainerService().Delete(ctx, id); err != nil {
			return fmt.Errorf("forget container %s: %w", id, err)
		}
		if err := c.SandboxStore().Delete(ctx, id); err != nil {
			return fmt.Errorf("forget sandbox %s: %w", id, err)
		}
	}
	processes, err := r.Processes()
	if err != nil {
		return err
	}
	r.Kill9Containerd()
	for _, p := range processes {
		if of(p.PID, ids) {
			if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
	}
	return r.RestartContainerd(ctx)
}

// of reports whether a process is a sandbox's, or its shim, by its cgroup or its arguments.
func of(pid int, ids []string) bool {
	for _, name := range []string{"cgroup", "cmdline"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name)) // one that has ended is nobody's
		for _, id := range ids {
			if bytes.Contains(text, []byte(id)) {
				return true
			}
		}
	}
	return false
}
