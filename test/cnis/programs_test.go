//go:build linux

package cnis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	kubeProxy   = "kube-proxy"
	ciliumAgent = "cilium-agent"
	stateDir    = "/run/cilium" // target of /var/run
	agentSocket = stateDir + "/cilium.sock"
)

func (n *node) startProxy(mode string) {
	n.Helper()
	rules := map[string][]string{
		"iptables": {"iptables-save", "-t", "nat"}, "nftables": {"nft", "list", "table", "ip", "kube-proxy"},
	}[mode]
	n.start(kubeProxy, func(ctx context.Context) error {
		said, err := exec.CommandContext(ctx, rules[0], rules[1:]...).Output()
		if err != nil {
			return err
		}
		return harness.Contains(string(said), "shop/web")
	}, filepath.Join(n.tools, kubeProxy), "--config="+n.proxyConfig(mode), "--v=2")
}

func (n *node) proxyConfig(mode string) string {
	n.Helper()
	return n.file("kube-proxy.yaml", fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: %s}
mode: %s
clusterCIDR: %s
hostnameOverride: %s
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, n.file("kubeconfig", kubeconfig(apiServer)), mode, clusterCIDR, nodeName))
}

func (n *node) stopProxy() {
	n.Helper()
	n.kill(kubeProxy)
	n.run(filepath.Join(n.tools, kubeProxy), "--cleanup")
}

type options map[string]string

// agentConfig writes the options of the Helm chart without Hubble, Envoy, IPv6 and health checks.
func (n *node) agentConfig(more options) (dir string) {
	n.Helper()
	all := options{
		"identity-allocation-mode": "crd", "debug": "false", "enable-ipv4": "true", "enable-ipv6": "false",
		"cluster-name": "default", "cluster-id": "0", "ipam": "kubernetes", "monitor-aggregation": "medium",
		"bpf-map-dynamic-size-ratio": "0.0025", "routing-mode": "tunnel", "tunnel-protocol": "vxlan",
		"enable-ipv4-masquerade": "true", "enable-bpf-masquerade": "false", "enable-bpf-clock-probe": "false",
		"kube-proxy-replacement": "true", "bpf-lb-sock": "false", "node-port-bind-protection": "true",
		"enable-auto-protect-node-port-range": "true", "enable-l2-neigh-discovery": "false", "auto-direct-node-routes": "false",
		"cni-exclusive": "true", "cni-log-file": "/var/run/cilium/cilium-cni.log",
		"write-cni-conf-when-ready": filepath.Join(n.rig.CNIConfDir(), "05-cilium.conflist"),
		"enable-health-checking":    "false", "enable-endpoint-health-checking": "false", "enable-l7-proxy": "false",
		"enable-hubble": "false", "enable-envoy-config": "false", "external-envoy-proxy": "false",
		"cgroup-root": n.group(), "bpf-root": "/sys/fs/bpf", "lib-dir": n.library(), "state-dir": "/var/run/cilium",
		"k8s-kubeconfig-path": n.file("kubeconfig", kubeconfig(apiServer)), "enable-k8s-networkpolicy": "true", "procfs": "/proc",
	}
	maps.Copy(all, more)
	dir = n.folder("config-map")
	harness.Check(n.T, os.RemoveAll(dir))
	harness.Check(n.T, os.Mkdir(dir, 0o755))
	for name, value := range all {
		harness.Check(n.T, os.WriteFile(filepath.Join(dir, name), []byte(value), 0o644))
	}
	return dir
}

// group mounts the node's cgroup, because Cilium's agent would mount all.
func (n *node) group() string {
	n.Helper()
	dir := n.folder("cgroup")
	if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
		harness.Check(n.T, unix.Mount(filepath.Join(harness.Unified(n.T), os.Getenv(groupOf)), dir, "", unix.MS_BIND, ""))
	}
	return dir
}

// library is a copy of the agent's BPF sources, which it writes to.
func (n *node) library() string {
	n.Helper()
	dir := n.folder("library")
	if _, err := os.Stat(filepath.Join(dir, "bpf")); err != nil {
		n.run("cp", "-r", filepath.Join(n.tools, "cilium", "bpf"), dir)
	}
	return dir
}

func (n *node) startAgent(more options) {
	n.Helper()
	n.start(ciliumAgent, n.agentReady, filepath.Join(n.tools, "cilium", ciliumAgent), "--config-dir="+n.agentConfig(more))
	n.networkReady()
}

// networkReady writes another file, as doctor's remedy does: containerd may miss a renamed one.
func (n *node) networkReady() {
	n.Helper()
	harness.Check(n.T, os.WriteFile(filepath.Join(n.rig.CNIConfDir(), ".reload"), nil, 0o600))
	harness.Check(n.T, os.Remove(filepath.Join(n.rig.CNIConfDir(), ".reload")))
	harness.Eventually(n, func() error {
		status := harness.Must(n.rig.Status(n.ctx))(n.T)
		for _, c := range status.Status.Conditions {
			if c.Type == "NetworkReady" && !c.Status {
				return errors.New(c.Message)
			}
		}
		return nil
	})
}

// startWarmAgent is startAgent, but waits until the agent is idle.
func (n *node) startWarmAgent(more options) {
	n.Helper()
	n.startAgent(more)
	n.agentSays("progName=cil_from_host")
}

func (n *node) reset() {
	n.Helper()
	n.kill(ciliumAgent)
	pins := harness.Must(filepath.Glob("/sys/fs/bpf/[^mp]*"))(n.T) // maps.debug and progs.debug are the kernel's
	for _, dir := range append(pins, stateDir) {
		harness.Check(n.T, os.RemoveAll(dir))
	}
}

func (n *node) agentReady(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(n.rig.CNIConfDir(), "05-cilium.conflist")); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:9879/healthz", nil)
	if err != nil {
		return err
	}
	request.Header.Set("brief", "true")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(string(text))
	}
	return err
}

func (n *node) agentSays(text string) {
	n.Helper()
	harness.Eventually(n, func() error {
		if !strings.Contains(n.logOf(ciliumAgent), text) {
			return errors.New("the agent has not said: " + text)
		}
		return nil
	})
}
