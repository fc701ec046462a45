//go:build linux

package doctor

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func kubeProxyProcess(s *scene) {
	s.start("kube-proxy", "nsenter", "--net="+s.netns, s.named("kube-proxy"), "600")
}

func kubeProxyElsewhere(s *scene) { s.start("kube-proxy", s.named("kube-proxy"), "600") }

func kubeProxyContainer(s *scene) {
	s.container("kube-system", "kube-proxy-x", runs("kube-proxy", 0, "sleep 600"))
}

// tenant only has the name of kube-proxy.
func tenant(s *scene) {
	s.containerIn(rig.PodOptions{Namespace: "shop", Name: "kube-proxy-x"}, runs("kube-proxy", 0, "sleep 600"))
}

func kubeProxyCrashing(s *scene) {
	s.container("kube-system", "kube-proxy-x", runs("kube-proxy", 7, "exit 1"))
}

func ciliumTold(s *scene) {
	// It has the right name and arguments, and does nothing.
	s.start("cilium-agent", "nsenter", "--net="+s.netns, "sh", "-c", `exec "$0" -c 'sleep 600; true' --kube-proxy-replacement=true`, s.copied("/bin/sh", "cilium-agent"))
}

func ciliumCrashing(s *scene) {
	dir := s.TempDir()
	harness.Check(s.T, os.MkdirAll(filepath.Join(dir, "cilium/config-map"), 0o755))
	write(s.T, filepath.Join(dir, "cilium/config-map/kube-proxy-replacement"), "true\n")
	s.container("kube-system", "cilium-x", runs("cilium-agent", 0, "exit 1", dir, "/tmp"))
}

func iptablesRules(s *scene) { s.rules("iptables-nft", "KUBE-SERVICES", "KUBE-SVC-ABC") }

func legacyRules(s *scene) {
	s.rules("iptables-legacy", "KUBE-SERVICES", "KUBE-SVC-ABC")
	s.rules("ip6tables-legacy", "KUBE-SERVICES")
}

func (s *scene) rules(program string, chains ...string) {
	s.Helper()
	for _, c := range chains {
		s.inside(program, "-t", "nat", "-N", c)
	}
	s.inside(program, "-t", "nat", "-A", "PREROUTING", "-j", chains[0])
}

func nftablesRules(s *scene) {
	s.inside("nft", "add table ip kube-proxy; add chain ip kube-proxy services; add chain ip kube-proxy nat-prerouting")
}

// kubeletRules are the chains that kubelet makes itself, for both iptables programs.
func kubeletRules(s *scene) {
	for _, program := range []string{"iptables-nft", "iptables-legacy"} {
		s.rules(program, "KUBE-MARK-MASQ", "KUBE-MARK-DROP", "KUBE-POSTROUTING", "KUBE-KUBELET-CANARY")
		s.inside(program, "-N", "KUBE-FIREWALL")
	}
}

// runs is a container whose latest attempt runs a script. The directories are mounted in pairs: the node's, its own.
func runs(name string, attempt uint32, script string, dirs ...string) *cri.ContainerConfig {
	c := &cri.ContainerConfig{Metadata: &cri.ContainerMetadata{Name: name, Attempt: attempt}, Command: []string{"/bin/sh", "-c", script}}
	for pair := range slices.Chunk(dirs, 2) {
		c.Mounts = append(c.Mounts, &cri.Mount{HostPath: pair[0], ContainerPath: pair[1]})
	}
	return c
}

func (n *node) container(namespace, pod string, c *cri.ContainerConfig) {
	n.Helper()
	n.containerIn(rig.PodOptions{Namespace: namespace, Name: pod, HostNetwork: true, Config: func(c *cri.PodSandboxConfig) { c.Hostname = "" }}, c)
}

func (n *node) containerIn(options rig.PodOptions, c *cri.ContainerConfig) {
	n.Helper()
	sandbox := harness.Must(n.rig.RunPod(n.ctx, options))(n)
	n.Cleanup(func() { harness.Check(n.T, n.rig.RemovePod(context.WithoutCancel(n.ctx), sandbox)) })
	config := n.rig.PodConfig(options)
	harness.Check(n.T, os.MkdirAll(config.LogDirectory, 0o755))
	c.Image = &cri.ImageSpec{Image: rig.PauseImage}
	c.LogPath = cmp.Or(c.LogPath, c.Metadata.Name+".log")
	for _, dir := range []string{"/bin", "/lib", "/lib64", "/usr"} {
		c.Mounts = append(c.Mounts, &cri.Mount{HostPath: dir, ContainerPath: dir, Readonly: true})
	}
	c.Linux = &cri.LinuxContainerConfig{SecurityContext: &cri.LinuxContainerSecurityContext{
		NamespaceOptions: config.Linux.SecurityContext.NamespaceOptions,
	}}
	made := harness.Must(n.rig.Runtime().CreateContainer(n.ctx, &cri.CreateContainerRequest{PodSandboxId: sandbox, Config: c, SandboxConfig: config}))(n)
	_, err := n.rig.Runtime().StartContainer(n.ctx, &cri.StartContainerRequest{ContainerId: made.ContainerId})
	harness.Check(n.T, err)
	if strings.HasSuffix(c.Command[len(c.Command)-1], "sleep 600") {
		return
	}
	harness.Until(n, "the container has ended", func() bool {
		status := harness.Must(n.rig.Runtime().ContainerStatus(n.ctx, &cri.ContainerStatusRequest{ContainerId: made.ContainerId}))(n)
		return status.Status.State == cri.ContainerState_CONTAINER_EXITED
	})
}

func (n *node) copied(program, name string) string {
	n.Helper()
	file := filepath.Join(n.TempDir(), name)
	harness.Check(n.T, os.WriteFile(file, harness.Must(os.ReadFile(program))(n), 0o755))
	return file
}
