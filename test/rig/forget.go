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

// ForgetPods makes containerd lose its sandboxes, like wiped state: their processes and records go without DEL, and
// containerd restarts.
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

func of(pid int, ids []string) bool {
	for _, name := range []string{"cgroup", "cmdline"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
		for _, id := range ids {
			if bytes.Contains(text, []byte(id)) {
				return true
			}
		}
	}
	return false
}
