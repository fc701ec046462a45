//go:build linux

package rig

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// PodOptions describe a pod, as a kubelet requests its sandbox.
type PodOptions struct {
	Namespace   string // default: default
	Name        string
	UID         string // default: derived from the name
	Attempt     uint32
	Hostname    string // default: the name
	HostPorts   []HostPort
	Labels      map[string]string
	Annotations map[string]string
	HostNetwork bool
	HostPID     bool
	// UserNamespace maps the pod's users to unprivileged ones.
	UserNamespace bool
	Config        func(*cri.PodSandboxConfig)
}

// HostPort maps a port of the host to the pod's.
type HostPort struct {
	Host, Container int32
	UDP             bool
}

// PodConfig returns a pod's CRI configuration, for RunPod and tests that use CRI directly.
func (r *Rig) PodConfig(o PodOptions) *cri.PodSandboxConfig {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.UID == "" {
		o.UID = "uid-" + o.Namespace + "-" + o.Name
	}
	if o.Hostname == "" {
		o.Hostname = o.Name
	}
	config := &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: o.Name, Namespace: o.Namespace, Uid: o.UID, Attempt: o.Attempt},
		Hostname:     o.Hostname,
		LogDirectory: filepath.Join(r.podLogs(), o.UID),
		Labels:       o.Labels,
		Annotations:  o.Annotations,
		Linux: &cri.LinuxPodSandboxConfig{
			CgroupParent:    "/" + cgroupName(r.dir),
			SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: &cri.NamespaceOption{}},
		},
	}
	if r.opts.CRIO {
		// Like a kubelet; a pod with a pause container needs CAP_SYS_RESOURCE, which a virtual machine may
		// lack.
		config.Linux.SecurityContext.NamespaceOptions.Pid = cri.NamespaceMode_CONTAINER
	}
	if o.HostNetwork {
		config.Linux.SecurityContext.NamespaceOptions.Network = cri.NamespaceMode_NODE
	}
	if o.HostPID {
		config.Linux.SecurityContext.NamespaceOptions.Pid = cri.NamespaceMode_NODE
	}
	if o.UserNamespace {
		// 65536 users above the host's, like a kubelet.
		users := []*cri.IDMapping{{HostId: 1 << 16, Length: 1 << 16}}
		config.Linux.SecurityContext.NamespaceOptions.UsernsOptions = &cri.UserNamespace{
			Mode: cri.NamespaceMode_POD, Uids: users, Gids: users,
		}
	}
	for _, p := range o.HostPorts {
		m := &cri.PortMapping{HostPort: p.Host, ContainerPort: p.Container}
		if p.UDP {
			m.Protocol = cri.Protocol_UDP
		}
		config.PortMappings = append(config.PortMappings, m)
	}
	if o.Config != nil {
		o.Config(config)
	}
	return config
}

// RunPod runs a sandbox and returns its id. ctx's deadline is CRI's; W3C trace context in its gRPC metadata becomes
// the parent of containerd's spans.
func (r *Rig) RunPod(ctx context.Context, o PodOptions) (string, error) {
	answer, err := r.runtime.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: r.PodConfig(o)})
	if err != nil {
		return "", fmt.Errorf("run pod %s: %w", o.Name, err)
	}
	return answer.PodSandboxId, nil
}

// BeginPod is RunPod, beside other things. Its error comes by the channel.
func (r *Rig) BeginPod(ctx context.Context, o PodOptions) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := r.RunPod(ctx, o)
		done <- err
	}()
	return done
}

// StopPod stops a sandbox: NRI's Stop, then CNI DEL.
func (r *Rig) StopPod(ctx context.Context, id string) error {
	if _, err := r.runtime.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("stop pod %s: %w", id, err)
	}
	return nil
}

// RemovePod removes a sandbox, stopping it if need be.
func (r *Rig) RemovePod(ctx context.Context, id string) error {
	if _, err := r.runtime.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id}); err != nil {
		return fmt.Errorf("remove pod %s: %w", id, err)
	}
	return nil
}

// EndPod stops a sandbox and removes it.
func (r *Rig) EndPod(ctx context.Context, id string) error {
	if err := r.StopPod(ctx, id); err != nil {
		return err
	}
	return r.RemovePod(ctx, id)
}

// PodComesAndGoes runs, stops and removes a sandbox.
func (r *Rig) PodComesAndGoes(ctx context.Context, o PodOptions) error {
	id, err := r.RunPod(ctx, o)
	if err != nil {
		return err
	}
	return r.EndPod(ctx, id)
}

// PodStatus returns CRI's verbose status of a sandbox.
func (r *Rig) PodStatus(ctx context.Context, id string) (*cri.PodSandboxStatusResponse, error) {
	answer, err := r.runtime.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: id, Verbose: true})
	if err != nil {
		return nil, fmt.Errorf("status of pod %s: %w", id, err)
	}
	return answer, nil
}

// Pods lists the sandboxes containerd knows.
func (r *Rig) Pods(ctx context.Context) ([]*cri.PodSandbox, error) {
	answer, err := r.runtime.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return answer.Items, nil
}

// Status returns CRI's verbose status: conditions, configuration, loaded networks. Each call reloads the networks
// and, from cniVersion 1.1.0 on, runs STATUS.
func (r *Rig) Status(ctx context.Context) (*cri.StatusResponse, error) {
	answer, err := r.runtime.Status(ctx, &cri.StatusRequest{Verbose: true})
	if err != nil {
		return nil, fmt.Errorf("status of the runtime: %w", err)
	}
	return answer, nil
}

// Runtime is the CRI client.
func (r *Rig) Runtime() cri.RuntimeServiceClient { return r.runtime }

// SetNetworks replaces the networks and waits until the runtime has loaded them. There may not be more than at Start.
func (r *Rig) SetNetworks(ctx context.Context, networks ...Network) error {
	if err := r.setNetworks(networks); err != nil {
		return err
	}
	return r.daemon.await(ctx, r.opts.Ready, r.engine.loaded)
}

// removeAllPods stops and removes every pod; failed ones are left to the sweep.
func (r *Rig) removeAllPods(ctx context.Context) error {
	pods, err := r.Pods(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range pods {
		one, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := r.EndPod(one, p.Id)
		cancel()
		if status.Code(errors.Unwrap(err)) != codes.NotFound {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
