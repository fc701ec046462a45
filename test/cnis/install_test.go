//go:build linux

package cnis

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// examples/kubeadm/install.sh with the real kubeadm, kubelet, etcd, Cilium and CoreDNS. systemd and the
// program cilium are small scripts. Each gate but ready, which test/doctor stops at, stops it once.
func TestInstallation(t *testing.T) {
	if !apart(t) {
		return
	}
	n := newHost(t, rig.Options{Usual: true}, "kubeadm", "kubelet", "kubectl", "kube-apiserver", "server", "coredns",
		"cilium/cilium-agent", "cilium/cilium-cni")
	n.plugin("cilium/cilium-cni", "cilium-cni")
	n.images()
	installer := n.folder("installer")
	t.Cleanup(func() {
		n.keep("kubelet", filepath.Join(installer, "kubelet.log"))
		// It would start its pods again.
		_ = exec.Command(filepath.Join(installer, "systemctl"), "stop", "kubelet").Run()
	})

	n.rig.StopContainerd()
	n.stops("runtime", "containerd does not answer")
	if _, err := os.Stat(adminConfig); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("kubeadm ran before the gate: %v", err)
	}
	harness.Check(t, n.rig.RestartContainerd(n.ctx))

	n.stops("cni", n.rig.CNIConfDir()+" contains no CNI configuration")

	t.Log("an earlier installation has left its network behind")
	n.conflist("05-cilium.conflist", "cilium", object{"type": "cilium-cni"})
	n.stops("agent", "asks its agent at /var/run/cilium/cilium.sock: there is no such socket")

	harness.Check(t, os.WriteFile(filepath.Join(n.fault, "cilium"), fmt.Appendf(nil,
		"#!/bin/sh -e\nkubectl apply --server-side -R -f %s/cilium/crds\nkubectl apply -f %s\n",
		n.tools, n.daemonSet()), 0o700))
	scale := []string{
		filepath.Join(n.tools, "kubectl"), "--kubeconfig=" + adminConfig, "--namespace=kube-system", "scale", "deployment", "coredns",
	}
	n.run(append(scale, "--replicas=0")...)
	_, _ = n.install("1s") // it need not last until the agent is ready
	harness.Eventually(t, func() error { return n.agentReady(n.ctx) })
	n.networkReady()
	n.stops("dns", "the cluster's DNS at 10.96.0.10 does not resolve kubernetes.default.svc.cluster.local")

	n.run(append(scale, "--replicas=1")...)
	out, code := n.install("5m")
	t.Log(out)
	harness.Equal(t, code, 0, "the script ended with", out)
	harness.Says(t, out, "the cluster's DNS is ready, after ", "Workers join with: kubeadm join "+nodeAddress+":6443 ")
}

const adminConfig = "/etc/kubernetes/admin.conf"

// images gives containerd kubeadm's images, each of one program.
func (n *node) images() {
	n.Helper()
	built := map[string]string{"etcd": "server"} // its name in the module
	list := n.run(filepath.Join(n.tools, "kubeadm"), "config", "images", "list", "--kubernetes-version="+n.version())
	for _, name := range strings.Fields(list) {
		program, _, _ := strings.Cut(path.Base(name), ":")
		if from, is := built[program]; is {
			copied := filepath.Join(n.folder("programs"), program)
			harness.Check(n.T, harness.CopyFile(filepath.Join(n.tools, from), copied))
			harness.Check(n.T, n.rig.ImportProgram(n.ctx, copied, name))
			continue
		}
		harness.Check(n.T, n.rig.ImportProgram(n.ctx, filepath.Join(n.tools, program), name))
	}
}

func (n *node) version() string {
	return strings.TrimSpace(n.run(filepath.Join(n.tools, "kubeadm"), "version", "-o", "short"))
}

// daemonSet is Cilium's, reduced to the agent, with the node's programs.
func (n *node) daemonSet() string {
	n.Helper()
	mounts, volumes := []object{}, []object{}
	mount := func(host, within string) {
		name := fmt.Sprint("v", len(volumes))
		volumes = append(volumes, object{"name": name, "hostPath": object{"path": host}})
		mounts = append(mounts, object{"name": name, "mountPath": within})
	}
	const within = "/tmp/cilium/config-map"
	mount(n.agentConfig(options{
		"k8s-kubeconfig-path": adminConfig, "bpf-lb-sock": "true", "bpf-lb-sock-hostns-only": "true",
	}), within)
	for _, dir := range []string{
		"/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc", "/sys/fs/bpf", "/run/netns", n.tools, n.rig.Dir(),
	} {
		mount(dir, dir)
	}
	harness.Check(n.T, os.MkdirAll(stateDir, 0o755))
	mount(stateDir, "/var/run/cilium")
	labels := object{"k8s-app": "cilium"}
	return n.json("cilium.yaml", object{
		"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": object{"name": "cilium", "namespace": "kube-system"},
		"spec": object{"selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels}, "spec": object{
			"hostNetwork": true, "hostPID": true, "volumes": volumes, "tolerations": []object{{"operator": "Exists"}},
			"containers": []object{{
				"name": ciliumAgent, "image": rig.PauseImage, "imagePullPolicy": "Never", "volumeMounts": mounts,
				"command":         []string{filepath.Join(n.tools, "cilium", ciliumAgent), "--config-dir=" + within},
				"securityContext": object{"privileged": true},
				"env": []object{
					{"name": "PATH", "value": clang + ":/usr/sbin:/usr/bin:/sbin:/bin"}, {"name": "K8S_NODE_NAME", "value": nodeName},
				},
			}},
		}}},
	})
}

// install runs the script with kubeadm's arguments for this node.
func (n *node) install(timeout string) (said string, code int) {
	n.Helper()
	dir := n.folder("installer")
	for name, text := range n.stubs(dir) {
		harness.Check(n.T, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o700))
	}
	cmd := exec.CommandContext(n.ctx, "../../examples/kubeadm/install.sh")
	cmd.Env = append(os.Environ(), "PATH="+strings.Join([]string{n.fault, dir, n.tools, os.Getenv("PATH")}, ":"),
		"API_SERVER="+nodeAddress, "POD_CIDR="+clusterCIDR, "TIMEOUT="+timeout, "DOCTOR="+program+" doctor --config "+n.options()+" --answer-timeout 30s")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		harness.Check(n.T, err)
	}
	return out.String(), code
}

func (n *node) stops(gate, reason string) {
	n.Helper()
	out, code := n.install("1s")
	if code != 1 || !strings.Contains(out, " is not ready after 1s: ") || !strings.Contains(out, reason) ||
		!strings.Contains(out, "install.sh: stopped at gate "+gate+" ") {
		n.Fatalf("gate %s: exit code %d, want 1 and %q:\n%s", gate, code, reason, out)
	}
}

func (n *node) stubs(dir string) map[string]string {
	n.Helper()
	patches := n.folder("patches")
	harness.Check(n.T, os.WriteFile(filepath.Join(patches, "kubeletconfiguration+merge.json"), []byte(kubeletPatch), 0o600))
	return map[string]string{
		"cilium": "",
		"kubeadm": fmt.Sprintf(`[ "$1" != init ] || set -- "$@" --node-name=%s --kubernetes-version=%s --patches=%s --cri-socket=unix://%s --ignore-preflight-errors=all
exec %s/kubeadm "$@"
`, nodeName, n.version(), patches, n.rig.Socket(), n.tools),
		"systemctl": fmt.Sprintf(`case "$*" in
"stop kubelet") [ ! -e %[1]s/kubelet.pid ] || kill -KILL "$(cat %[1]s/kubelet.pid)" ;;
"start kubelet" | "restart kubelet")
	"$0" stop kubelet
	. /var/lib/kubelet/kubeadm-flags.env
	nsenter --mount=/proc/%[2]d/ns/mnt %[3]s/kubelet --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS >>%[1]s/kubelet.log 2>&1 </dev/null &
	echo $! >%[1]s/kubelet.pid ;;
"is-active kubelet" | "is-active kubelet.service") [ -e %[1]s/kubelet.pid ] && echo active ;;
is-active*) exit 3 ;;
esac
`, dir, n.rig.ContainerdPID(), n.tools),
	}
}

// kubeletPatch is for a node with partial cgroups of version 1 and a full disk (see test/kubernetes).
const kubeletPatch = `{"failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupsPerQOS": false, "enforceNodeAllocatable": [],
"failSwapOn": false, "localStorageCapacityIsolation": false, "makeIPTablesUtilChains": false, "imageGCHighThresholdPercent": 100,
"evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "imagefs.available": "0%"}}`

// ownFolders covers what kubeadm and the kubelet write.
func (n *node) ownFolders() {
	n.Helper()
	for _, dir := range []string{"/etc", "/var", "/usr/libexec"} {
		own := n.TempDir()
		upper, work := filepath.Join(own, "upper"), filepath.Join(own, "work")
		harness.Check(n.T, errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)))
		harness.Check(n.T, unix.Mount("overlay", dir, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work)))
	}
	// No name server listens there, so a lookup fails at once.
	harness.Check(n.T, os.WriteFile("/etc/resolv.conf", []byte("nameserver "+gateway+"\n"), 0o644))
	harness.Check(n.T, os.WriteFile("/etc/hosts", []byte("127.0.0.1 localhost\n"+nodeAddress+" "+nodeName+"\n"), 0o644))
}
