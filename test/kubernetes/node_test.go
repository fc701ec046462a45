//go:build linux

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
)

// sysctls are required by a kubelet. Files cover the kernel's, so the host is unchanged.
var sysctls = map[string]string{
	"vm/overcommit_memory":      "1",
	"vm/panic_on_oom":           "0",
	"kernel/panic":              "10",
	"kernel/panic_on_oops":      "1",
	"kernel/keys/root_maxkeys":  "1000000",
	"kernel/keys/root_maxbytes": "25000000",
}

// addNodeAddress adds the node's address to the host, because a kubelet rejects loopback.
func (c *cluster) addNodeAddress() {
	c.Helper()
	link := c.rig.Networks()[0].Bridge + "n" // the rig removes it by name
	subnet := c.rig.Networks()[0].Subnet.Addr().As4()
	c.address = fmt.Sprintf("%d.%d.255.254", subnet[0], subnet[1]) // of the rig's range, beyond its networks
	for _, args := range []string{
		"link add " + link + " type bridge",
		"address add " + c.address + "/32 dev " + link,
		"link set " + link + " up",
	} {
		out, err := exec.CommandContext(c.ctx, "ip", strings.Fields(args)...).CombinedOutput()
		if err != nil {
			c.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
}

// startKubelet starts the kubelet in containerd's namespace and returns once the node is ready.
func (c *cluster) startKubelet() {
	c.Helper()
	dns, err := kube.DNS(c.address)
	harness.Check(c, err)
	c.Cleanup(func() { _ = dns.Close() })
	dir := filepath.Join(c.rig.Dir(), "kubelet")
	for _, d := range []string{"", "root", "pods", "var/log", "plugins", "sysctl"} {
		harness.Check(c, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	// The kubelet's files below /var stay in the rig.
	harness.Check(c, os.Symlink("/run", filepath.Join(dir, "var", "run")))
	script := fmt.Sprintf("mount --make-private /proc\nmount --bind %s/var /var\n", dir)
	for name, value := range sysctls {
		file := filepath.Join(dir, "sysctl", strings.ReplaceAll(name, "/", "."))
		harness.Check(c, os.WriteFile(file, []byte(value), 0o644))
		script += fmt.Sprintf("mount --bind %s /proc/sys/%s\n", file, name)
	}
	inside := harness.Must(c.rig.Inside(script))(c)
	harness.Check(c, os.WriteFile(filepath.Join(dir, "resolv.conf"), []byte("nameserver 127.0.0.1\n"), 0o644))
	write := func(name string, v any) string {
		text := harness.Must(json.MarshalIndent(v, "", "  "))(c)
		path := filepath.Join(dir, name)
		harness.Check(c, os.WriteFile(path, text, 0o600))
		return path
	}
	c.podLogs = filepath.Join(dir, "pods")
	c.beside("kubelet", c.nodeReady, append(inside,
		c.tool("kubelet"), "--config="+write("config.json", c.kubeletConfig(dir)), "--kubeconfig="+c.configOf(nodeToken),
		"--root-dir="+filepath.Join(dir, "root"), "--cert-dir="+filepath.Join(dir, "pki"),
		"--hostname-override="+c.node, "--node-ip="+c.address)...)
}

func (c *cluster) kubeletConfig(dir string) map[string]any {
	c.healthz = harness.Address(c)
	tracing := map[string]any{"samplingRatePerMillion": 0}
	if c.jaeger != nil {
		tracing = map[string]any{"endpoint": hostPort(c.jaeger.OTLP()), "samplingRatePerMillion": 1_000_000}
	}
	at := netip.MustParseAddrPort(c.healthz)
	host, port := at.Addr().String(), at.Port()
	return map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"tracing": tracing,

		"containerRuntimeEndpoint": "unix://" + c.rig.Socket(),
		"podLogsDir":               c.podLogs, "volumePluginDir": filepath.Join(dir, "plugins"),
		"resolvConf": filepath.Join(dir, "resolv.conf"),
		"clusterDNS": []string{c.address}, "clusterDomain": "cluster.local",
		// For the API server's exec. Any client is accepted, on a private address of the rig.
		"address": c.address, "port": netip.MustParseAddrPort(harness.Address(c)).Port(), "healthzPort": port, "healthzBindAddress": host,
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":  map[string]any{"mode": "AlwaysAllow"},

		// Partial cgroups of version 1; a score below zero needs CAP_SYS_RESOURCE.
		"failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupsPerQOS": false, "enforceNodeAllocatable": []string{},
		"failSwapOn": false, "oomScoreAdj": 0, "localStorageCapacityIsolation": false,
		"makeIPTablesUtilChains": false,
		// Ignore the host's full disk.
		"evictionHard":                map[string]string{"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"},
		"imageGCHighThresholdPercent": 100,
		// Apply ConfigMap changes at once.
		"configMapAndSecretChangeDetectionStrategy": "Watch", "syncFrequency": "1s",
	}
}

func (c *cluster) nodeReady(ctx context.Context) error {
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := c.api.Get(ctx, "/api/v1/nodes/"+c.node, &node); err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return nil
		}
		if condition.Type == "Ready" {
			return errors.New("the node is not ready: " + condition.Message)
		}
	}
	return errors.New("the node has said nothing yet")
}
