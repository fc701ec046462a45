//go:build linux

package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ContainerOptions describe a container of a pod, as a kubelet requests it.
type ContainerOptions struct {
	Name string
	// Image was imported before. Default: PauseImage.
	Image string
	// Args are its command. Default: the image's.
	Args []string
	// Env is its environment, `NAME=value`.
	Env []string
	// Capabilities are added to the default ones, such as "NET_ADMIN".
	Capabilities []string
	// Mounts map host directories to read-only paths inside.
	Mounts map[string]string
}

// Container is a started container.
type Container struct {
	ID  string
	rig *Rig
	log string
}

// ImportProgram imports an image that consists of one static program.
func (r *Rig) ImportProgram(ctx context.Context, program, name string) error {
	archive := r.at("staging", filepath.Base(program)+".tar")
	if err := writeImage(program, name, archive); err != nil {
		return err
	}
	return r.ImportImage(ctx, archive, name)
}

// RunContainer starts a container in a pod's sandbox as BestEffort. It is removed with the pod.
func (r *Rig) RunContainer(ctx context.Context, sandbox string, pod PodOptions, o ContainerOptions) (*Container, error) {
	config := r.PodConfig(pod)
	c := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: o.Name},
		Image:    &cri.ImageSpec{Image: o.Image},
		Command:  o.Args,
		LogPath:  o.Name + ".log",
		Linux: &cri.LinuxContainerConfig{
			Resources: &cri.LinuxContainerResources{CpuShares: 2},
			SecurityContext: &cri.LinuxContainerSecurityContext{
				NamespaceOptions: config.Linux.SecurityContext.NamespaceOptions,
				Capabilities:     &cri.Capability{AddCapabilities: o.Capabilities},
			},
		},
	}
	if o.Image == "" {
		c.Image.Image = PauseImage
	}
	for _, pair := range o.Env {
		key, value, _ := strings.Cut(pair, "=")
		c.Envs = append(c.Envs, &cri.KeyValue{Key: key, Value: []byte(value)})
	}
	for host, inside := range o.Mounts {
		c.Mounts = append(c.Mounts, &cri.Mount{HostPath: host, ContainerPath: inside, Readonly: true})
	}
	if err := os.MkdirAll(config.LogDirectory, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of a pod's logs: %w", err)
	}
	made, err := r.runtime.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: sandbox, Config: c, SandboxConfig: config})
	if err != nil {
		return nil, fmt.Errorf("create container %s: %w", o.Name, err)
	}
	if _, err := r.runtime.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: made.ContainerId}); err != nil {
		return nil, fmt.Errorf("start container %s: %w", o.Name, err)
	}
	return &Container{ID: made.ContainerId, rig: r, log: filepath.Join(config.LogDirectory, c.LogPath)}, nil
}

// Exec runs a command in the container and returns its standard output.
func (c *Container) Exec(ctx context.Context, args ...string) (string, error) {
	answer, err := c.rig.runtime.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: c.ID, Cmd: args})
	if err == nil && answer.ExitCode != 0 {
		err = fmt.Errorf("exit code %d: %s", answer.ExitCode, answer.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("exec %s: %w", strings.Join(args, " "), err)
	}
	return string(answer.Stdout), nil
}

// Exited reports whether the container has exited.
func (c *Container) Exited(ctx context.Context) (bool, error) {
	answer, err := c.rig.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: c.ID})
	if err != nil {
		return false, fmt.Errorf("status of container %s: %w", c.ID, err)
	}
	return answer.Status.State == cri.ContainerState_CONTAINER_EXITED, nil
}

// Said returns the output in CRI's log format (time, stream, P or F, text).
func (c *Container) Said() string {
	text, _ := os.ReadFile(c.log) // possibly not created
	return string(text)
}

// PID is the process id of its first process.
func (c *Container) PID(ctx context.Context) (int, error) {
	answer, err := c.rig.runtime.ContainerStatus(ctx, &cri.ContainerStatusRequest{ContainerId: c.ID, Verbose: true})
	if err != nil {
		return 0, fmt.Errorf("status of container %s: %w", c.ID, err)
	}
	var info struct{ PID int }
	if err := json.Unmarshal([]byte(answer.Info["info"]), &info); err != nil {
		return 0, fmt.Errorf("what CRI says of container %s: %w", c.ID, err)
	}
	return info.PID, nil
}
