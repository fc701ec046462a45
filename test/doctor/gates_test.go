//go:build linux

package doctor

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/kube"
	"github.com/cniscope/cniscope/test/rig"
)

// install runs the example script with programs that only write down their arguments. The test does what they would.
func (n *node) install(cni, timeout string) (out, steps string, code int) {
	n.Helper()
	dir := n.TempDir()
	journal := filepath.Join(dir, "journal")
	for _, name := range []string{"systemctl", "kubeadm", "cilium", "kubectl"} {
		// kubectl get: there is nothing yet.
		write(n.T, filepath.Join(dir, name), fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *' get '*) exit 1;; esac\necho %s \"$@\" >>%s\n", name, journal))
		harness.Check(n.T, os.Chmod(filepath.Join(dir, name), 0o700))
	}
	cmd := exec.CommandContext(n.ctx, "../../examples/kubeadm/install.sh")
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CNI="+cni, "API_SERVER=192.0.2.7", "TIMEOUT="+timeout,
		"DOCTOR="+strings.Join(n.command("--answer-timeout", "30s").Args, " "))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	done, _ := os.ReadFile(journal)
	return said.String(), string(done), exitCode(n.T, err)
}

// stops runs the script, which stops at a gate, with its reason, after a step.
func (n *node) stops(gate, reason, step string) {
	n.Helper()
	out, steps, code := n.install("cilium", "1s")
	last := strings.Split(strings.TrimSpace(steps), "\n")
	if code != 1 || !regexp.MustCompile(`waited \d+s: `+regexp.QuoteMeta(reason)).MatchString(out) || !strings.Contains(out, " is not ready after 1s: "+reason) ||
		!strings.Contains(out, "install.sh: stopped at gate "+gate+" ") || !strings.HasPrefix(last[len(last)-1], step) {
		n.Errorf("gate %s: exit code %d, want 1, %q and %q after %s:\n%s%s", gate, code, reason, reason, step, steps, out)
	}
}

const notReady = `#!/bin/sh
case $CNI_COMMAND in
VERSION) echo '{"cniVersion":"1.1.0","supportedVersions":["1.0.0","1.1.0"]}' ;;
STATUS) echo '{"cniVersion":"1.1.0","code":50,"msg":"no address left"}'; exit 1 ;;
esac
`

// Each gate of examples/kubeadm stops the script once, for the reason that is there.
func TestTheGatesOfAnInstallation(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	n.rig.StopContainerd()
	n.stops("runtime", "containerd does not answer", "systemctl enable --now containerd")
	harness.Check(t, n.rig.RestartContainerd(n.ctx))

	n.stops("cni", n.rig.CNIConfDir()+" contains no CNI configuration", "cilium install")
	socket := filepath.Join(t.TempDir(), "agent.sock")
	write(t, filepath.Join(n.rig.CNIConfDir(), "10-late.conflist"),
		fmt.Sprintf(`{"cniVersion":"1.1.0","name":"late","plugins":[{"type":"late","agent":%q}]}`, socket))
	n.stops("cni", "the CNI plugin late cannot be run", "cilium install")
	bridge := harness.Must(os.ReadFile(filepath.Join(n.rig.CNIBinDir(), "bridge")))(t)
	harness.Check(t, n.rig.AddPlugin("late", bridge))

	n.stops("agent", "plugin late of network \"late\" asks its agent at "+socket+": there is no such socket", "cilium install")
	listens(t, socket)

	harness.Check(t, n.rig.AddPlugin("late", []byte(notReady)))
	n.stops("ready", "the plugins' STATUS reports that the network is not ready", "cilium install")
	harness.Check(t, n.rig.AddPlugin("late", bridge))

	n.stops("dns", "no kubelet runs here, or the kubelet's configuration names no cluster DNS", "cilium install")
	server := fmt.Sprintf("127.53.%d.%d", os.Getpid()>>8&255, os.Getpid()&255)
	config := filepath.Join(t.TempDir(), "config.yaml")
	write(t, config, "clusterDNS:\n- "+server+"\nclusterDomain: corp.example\n")
	n.start("kubelet", n.copied("/bin/sh", "kubelet"), "-c", "while :; do sleep 1; done", "kubelet", "--config="+config)
	n.stops("dns", "the cluster's DNS at "+server+" does not resolve kubernetes.default.svc.corp.example", "cilium install")
	dns := harness.Must(kube.DNS(server))(t)
	defer dns.Close()

	out, steps, code := n.install("cilium", "1m")
	harness.Equal(t, code, 0, "the script ended with", out)
	harness.Says(t, out, "the container runtime is ready, after ", "the CNI configuration is ready, after ", "the CNI's agent is ready, after ",
		"the node's network is ready, after ", "the cluster's DNS is ready, after ", "Workers join with: ")
	harness.Says(t, steps, "kubeadm init --pod-network-cidr=10.244.0.0/16 --apiserver-advertise-address=192.0.2.7 --skip-phases=addon/kube-proxy\n",
		"--set kubeProxyReplacement=true --set k8sServiceHost=192.0.2.7 --set k8sServicePort=6443 ")
	if out, steps, code = n.install("kube-flannel.yml", "1m"); code != 0 || strings.Contains(steps, "skip-phases") ||
		!strings.Contains(steps, "\nkubectl apply -f kube-flannel.yml\n") {
		t.Errorf("another CNI: exit code %d:\n%s%s", code, steps, out)
	}
}
