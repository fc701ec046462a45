//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// enter is a script for a new mount namespace. For each three arguments it makes a mount ($1)
// private and covers a directory ($2) by the rig's ($3); then it executes the command after `--`.
const enter = `set -e
while [ "$1" != -- ]; do
	mount --make-private "$1"
	mount --bind "$3" "$2"
	mount --make-shared "$2"
	shift 3
done
shift
exec "$@"`

type engine interface {
	name() string
	command() []string
	configure(ctx context.Context) error
	load(ctx context.Context, archive, name string) error
	// loaded is nil once it uses the networks in its directory.
	loaded(ctx context.Context) error
}

func (r *Rig) engineOf() engine {
	if r.opts.CRIO {
		return crio{r}
	}
	return containerd{r}
}

type containerd struct{ *Rig }

func (containerd) name() string { return "containerd" }

func (r containerd) command() []string {
	return []string{r.program("containerd"), "--config", r.config()}
}

func (r containerd) configure(ctx context.Context) error { return r.writeConfig(ctx) }

func (r containerd) load(ctx context.Context, archive, _ string) error {
	return r.run(ctx, r.program("ctr"), "--address", r.socket(), "--namespace", "k8s.io", "images", "import", archive)
}

func (r containerd) loaded(ctx context.Context) error {
	status, err := r.Status(ctx)
	if err != nil {
		return err
	}
	if s := status.Info["lastCNILoadStatus"]; s != "OK" {
		return fmt.Errorf("containerd could not load the networks: %s", s)
	}
	return loadedNetworks(r.cniConf(), status.Info["cniconfig"])
}

func (r *Rig) connect() error {
	conn, err := grpc.NewClient("unix://"+r.socket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("make a CRI client: %w", err)
	}
	r.conn, r.runtime, r.images = conn, cri.NewRuntimeServiceClient(conn), cri.NewImageServiceClient(conn)
	return nil
}

// RestartContainerd starts a stopped containerd and waits until it and its networks are ready. Its pods survive.
func (r *Rig) RestartContainerd(ctx context.Context) error {
	return r.launch(ctx, func(ctx context.Context) error { return r.ready(ctx, len(r.networks) > 0) })
}

// RestartBroken starts a stopped containerd by a command, and waits until it listens.
func (r *Rig) RestartBroken(ctx context.Context, by ...string) error {
	return r.launch(ctx, func(context.Context) error { return r.listens() }, by...)
}

func (r *Rig) launch(ctx context.Context, ready func(context.Context) error, by ...string) error {
	if r.daemon.running() {
		return errors.New("containerd is running")
	}
	command := r.engine.command()
	if !r.opts.HostMounts {
		front, err := r.covered()
		if err != nil {
			return err
		}
		command = append(front, command...)
	}
	command = append(by, command...)
	var err error
	if r.opts.Nice != 0 {
		command = append([]string{"nice", "-n", strconv.Itoa(r.opts.Nice)}, command...)
	}
	r.daemon, err = startDaemon(r.engine.name(), r.containerdLog(), containerdEnv(r.paths, r.opts, r.path), command[0], command[1:]...)
	if err != nil {
		return err
	}
	return r.daemon.await(ctx, r.opts.Ready, ready)
}

func (r *Rig) covered() ([]string, error) {
	front := []string{"unshare", "--mount", "--propagation", "unchanged", "/bin/sh", "-c", enter, "sh"}
	for _, c := range r.covers() {
		around, err := mountOf(c.dir)
		if err != nil {
			return nil, err
		}
		front = append(front, around, c.dir, c.by)
	}
	return append(front, "--"), nil
}

// ready is nil once CRI reports the runtime and, optionally, the network ready.
func (r *Rig) ready(ctx context.Context, network bool) error {
	// A failed client backs off for a second, so this probes first.
	if err := r.listens(); err != nil {
		return err
	}
	r.conn.ResetConnectBackoff()
	status, err := r.runtime.Status(ctx, &cri.StatusRequest{})
	if err != nil {
		return err
	}
	for _, c := range status.GetStatus().GetConditions() {
		if !c.Status && (c.Type == "RuntimeReady" || network && c.Type == "NetworkReady") {
			return fmt.Errorf("%s is false: %s: %s", c.Type, c.Reason, c.Message)
		}
	}
	return nil
}

func (r *Rig) listens() error {
	c, err := net.DialTimeout("unix", r.socket(), time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// Kill9Containerd kills containerd; shims and pods survive.
func (r *Rig) Kill9Containerd() { r.daemon.kill9() }

// StopContainerd stops containerd; shims and pods survive.
func (r *Rig) StopContainerd() { r.daemon.stop(10 * time.Second) }

// ContainerdPID is containerd's process id, or 0.
func (r *Rig) ContainerdPID() int {
	if !r.daemon.running() {
		return 0
	}
	return r.daemon.cmd.Process.Pid
}

func mountOf(path string) (string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("list the mounts: %w", err)
	}
	best := "/"
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 4 && len(f[4]) > len(best) && (path == f[4] || strings.HasPrefix(path, f[4]+"/")) {
			best = f[4]
		}
	}
	return best, nil
}
