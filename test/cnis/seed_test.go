//go:build linux

package cnis

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// kubeadm's kube-proxy crashes while Cilium replaces it, so its agent waits for 10.96.0.1. Doctor
// names both; its remedy makes the node ready.
func TestSeed(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newNode(t)
	// An unprivileged container cannot write connection tracking limits.
	proxy := n.systemPod("kube-proxy-7xk2p")
	n.crash(proxy, kubeProxy, 3, filepath.Join(n.tools, kubeProxy), "--config="+n.file("broken.yaml", fmt.Sprintf(
		"apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nclientConnection: {kubeconfig: %s}\nmode: iptables\nclusterCIDR: %s\nhostnameOverride: %s\n",
		n.file("kubeconfig", kubeconfig(apiServer)), clusterCIDR, nodeName)))
	agent := n.systemPod("cilium-m4c9z")
	service := n.file("kubeconfig.service", kubeconfig("10.96.0.1:443"))
	waits := n.agentContainer(agent, 0, options{"k8s-kubeconfig-path": service})
	harness.Eventually(t, func() error { return harness.Contains(waits.said(), "10.96.0.1") })

	n.finds("network-ready", "cni plugin not initialized", "cilium-m4c9z", "10.96.0.1")
	n.finds("network-pods", "container kube-proxy of pod kube-system/kube-proxy-7xk2p", "3 restarts", "its last log line: ")
	n.finds("service-proxies", "two service proxies", "kubectl -n kube-system delete daemonset kube-proxy", "k8sServiceHost")

	// The remedy: without kube-proxy, with k8sServiceHost and k8sServicePort.
	harness.Check(t, n.rig.RemovePod(n.ctx, proxy.sandbox))
	n.stopContainer(waits)
	n.agentContainer(agent, 1, nil)
	harness.Eventually(t, func() error { return n.agentReady(n.ctx) })
	n.networkReady()
	n.quiet("network-ready", "service-proxies", "cni-folder", "network-pods")
	n.add("after")
	n.silent()
}

type systemPod struct {
	rig.PodOptions
	sandbox string
}

func (n *node) systemPod(name string) systemPod {
	n.Helper()
	o := rig.PodOptions{
		Namespace: "kube-system", Name: name, HostNetwork: true, HostPID: true,
		Config: func(c *cri.PodSandboxConfig) {
			c.Hostname = ""
			c.Linux.SecurityContext.Privileged = true
		},
	}
	sandbox := harness.Must(n.rig.RunPod(n.ctx, o))(n.T)
	return systemPod{o, sandbox}
}

type container struct{ id, log string }

func (c container) said() string {
	text, _ := os.ReadFile(c.log)
	return string(text)
}

func (p systemPod) run(n *node, name string, attempt int, privileged bool, mounts map[string]string, command ...string) container {
	n.Helper()
	config := n.rig.PodConfig(p.PodOptions)
	harness.Check(n.T, os.MkdirAll(config.LogDirectory, 0o755))
	c := &cri.ContainerConfig{
		Metadata: &cri.ContainerMetadata{Name: name, Attempt: uint32(attempt)},
		Image:    &cri.ImageSpec{Image: rig.PauseImage}, Command: command,
		LogPath:     fmt.Sprintf("%s_%d.log", name, attempt),
		Annotations: map[string]string{"io.kubernetes.container.restartCount": strconv.Itoa(attempt)},
		Labels: map[string]string{
			"io.kubernetes.container.name": name, "io.kubernetes.pod.name": p.Name, "io.kubernetes.pod.namespace": p.Namespace,
		},
		Envs: []*cri.KeyValue{{Key: "PATH", Value: []byte(clang + ":/usr/sbin:/usr/bin:/sbin:/bin")}, {Key: "K8S_NODE_NAME", Value: []byte(nodeName)}},
		Linux: &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{
			Privileged: privileged, NamespaceOptions: config.Linux.SecurityContext.NamespaceOptions,
		}},
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc", n.tools, n.rig.Dir()} {
		c.Mounts = append(c.Mounts, &cri.Mount{HostPath: dir, ContainerPath: dir})
	}
	for host, within := range mounts {
		c.Mounts = append(c.Mounts, &cri.Mount{HostPath: host, ContainerPath: within})
	}
	made, err := n.rig.Runtime().CreateContainer(n.ctx, &cri.CreateContainerRequest{PodSandboxId: p.sandbox, Config: c, SandboxConfig: config})
	harness.Check(n.T, err)
	_, err = n.rig.Runtime().StartContainer(n.ctx, &cri.StartContainerRequest{ContainerId: made.ContainerId})
	harness.Check(n.T, err)
	return container{made.ContainerId, filepath.Join(config.LogDirectory, c.LogPath)}
}

// crash restarts a failing container like a kubelet, keeping the last two attempts.
func (n *node) crash(p systemPod, name string, restarts int, command ...string) {
	n.Helper()
	for attempt := range restarts + 1 {
		c := p.run(n, name, attempt, false, nil, command...)
		harness.Until(n, "the container has ended", func() bool {
			status := harness.Must(n.rig.Runtime().ContainerStatus(n.ctx, &cri.ContainerStatusRequest{ContainerId: c.id}))(n.T)
			return status.Status.State == cri.ContainerState_CONTAINER_EXITED
		})
		if attempt < restarts {
			n.stopContainer(c)
		}
	}
}

func (n *node) stopContainer(c container) {
	n.Helper()
	ctx := context.WithoutCancel(n.ctx)
	_, err := n.rig.Runtime().StopContainer(ctx, &cri.StopContainerRequest{ContainerId: c.id})
	harness.Check(n.T, err)
	_, err = n.rig.Runtime().RemoveContainer(ctx, &cri.RemoveContainerRequest{ContainerId: c.id})
	harness.Check(n.T, err)
}

func (n *node) agentContainer(p systemPod, attempt int, more options) container {
	n.Helper()
	within := "/tmp/cilium/config-map"
	harness.Check(n.T, os.MkdirAll(stateDir, 0o755))
	return p.run(n, ciliumAgent, attempt, true, map[string]string{
		n.agentConfig(more): within, "/sys/fs/bpf": "/sys/fs/bpf",
		stateDir: "/var/run/cilium", "/run/netns": "/var/run/netns",
	}, filepath.Join(n.tools, "cilium", ciliumAgent), "--config-dir="+within)
}
