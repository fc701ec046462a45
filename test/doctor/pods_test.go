//go:build linux

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// doctor reports the state, exit code, restarts and last log line of a pod that writes the CNI directory.
func TestAPodThatWritesTheFolderAndCrashesIsFound(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	writes := func(name, script string, attempt uint32) *cri.ContainerConfig {
		return runs(name, attempt, script, n.rig.CNIConfDir(), "/host/etc/cni/net.d")
	}
	n.container("kube-system", "good", writes("install-cni", "exit 0", 0))
	n.container("kube-system", "steady", writes("agent", "sleep 600", 0))
	n.container("shop", "crashes-but-no-business-of-ours", runs("web", 0, "exit 3"))
	n.silent("network-pods")
	n.container("kube-system", "calico-node-x", writes("install-cni", `echo first; printf 'no \033[31mroute to the API server\n'; exit 7`, 4))
	f := n.finds("network-pods", doctor.Problem, "install-cni of pod kube-system/calico-node-x fails again and again", "writes CNI directories",
		"exit code 7", "4 restarts", "its last log line: no route to the API server", n.rig.CNIConfDir(), "kubectl -n kube-system logs calico-node-x -c install-cni --previous")
	if strings.Contains(strings.Join(f.Evidence, ""), "\x1b") {
		t.Error("a control character got through")
	}
	n.finds("network-ready", doctor.Problem, "no CNI configuration has been written", "by ", "calico-node-x (container install-cni: exited)")
}

// The last log line shows the reason of a wait, also for a process without a container.
func TestAWriterThatRunsAndWaits(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	log := filepath.Join(t.TempDir(), "log")
	n.start("antrea-agent", "sh", "-c", `exec 2> "$1"; echo waiting for the controller >&2; exec "$0" 600`, n.named("antrea-agent"), log)
	n.finds("network-ready", doctor.Problem, "has been written into "+n.rig.CNIConfDir()+" by antrea-agent (process", "the last log line of antrea-agent, process", ": waiting for the controller", "journalctl _PID=")

	n.container("kube-system", "cilium-x7k2p", runs("config", 0, "echo waiting for 10.96.0.1:443; sleep 600"))
	harness.Until(n, "its log is written", func() bool {
		return strings.Contains(strings.Join(of(n.examine(), "network-ready")[0].Evidence, "\n"), "the last log line of config (running) of pod kube-system/cilium-x7k2p: waiting for 10.96.0.1:443")
	})
	n.silent("network-pods")
}

// Before a container mounts the directories, the name of the pod identifies the CNI.
func TestAPodOfACNIThatDoesNotGetThatFarIsFound(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	n.container("kube-system", "cilium-x7k2p", runs("config", 7, "echo Unable to contact k8s api-server; exit 1"))
	n.finds("network-pods", doctor.Problem, "container config of pod kube-system/cilium-x7k2p fails again and again", "belongs to Cilium", "7 restarts", "its last log line: Unable to contact k8s api-server")
	n.finds("network-ready", doctor.Problem, "has been written into", "by cilium-x7k2p (container config: exited)")
}

// What an agent's last line says it died of has its remedy; the same container with other words has none but its log.
func TestAnAgentThatRefusesTheNode(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	says := func(words string) *cri.ContainerConfig {
		return runs("calico-node", 5, "echo \""+words+"\"; exit 1")
	}
	n.container("kube-system", "calico-node-a", says("Kernel's RPF check is set to 'loose'. Calico requires net.ipv4.conf.all.rp_filter to be set to 0 or 1."))
	n.finds("network-pods", doctor.Problem, "container calico-node of pod kube-system/calico-node-a", "is set to 'loose'", "sysctl -w net.ipv4.conf.all.rp_filter=1", "FELIX_IGNORELOOSERPF=true")
	twin := newNode(t, rig.Options{Networks: []rig.Network{}})
	twin.container("kube-system", "calico-node-b", says("read net.ipv4.conf.all.rp_filter: permission denied"))
	if f := twin.finds("network-pods", doctor.Problem, "its last log line: read net.ipv4.conf.all.rp_filter"); strings.Contains(strings.Join(f.Remedy, ""), "sysctl") {
		t.Errorf("%q", f.Remedy)
	}
}

// An installer that cannot overwrite a plugin which runs names that process; one whose disk is full does not.
func TestAnInstallerThatCannotOverwriteAPlugin(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	file := filepath.Join(n.rig.CNIBinDir(), "portmap")
	harness.Check(t, os.Remove(file))
	n.run("cp", "/bin/sleep", file)
	n.start("portmap", file, "600")
	installs := func(n *node, name, script string) {
		n.container("kube-system", name, runs("install-cni", 4, script, n.rig.CNIBinDir(), "/host/opt/cni/bin"))
	}
	installs(n, "calico-node-a", `exec 2>&1; dd if=/bin/true of=/host/opt/cni/bin/portmap conv=notrunc status=none ||
		echo 'level=error msg="Failed to install" error="open /host/opt/cni/bin/portmap: text file busy"'; exit 1`)
	n.finds("network-pods", doctor.Problem, "calico-node-a", "portmap: text file busy", "pgrep -a portmap")
	twin := newNode(t, rig.Options{Networks: []rig.Network{}})
	installs(twin, "calico-node-b", `echo 'level=error msg="Failed to install" error="open /host/opt/cni/bin/portmap: no space left on device"'; exit 1`)
	if f := twin.finds("network-pods", doctor.Problem, "no space left"); strings.Contains(strings.Join(f.Remedy, ""), "pgrep") {
		t.Errorf("%q", f.Remedy)
	}
}

func TestALongLastLineIsCut(t *testing.T) {
	n := newNode(t, rig.Options{})
	n.container("kube-system", "kube-proxy-x", runs("kube-proxy", 0, "yes no route to the API server | head -n 5000 | tr '\\n' ' '; exit 1"))
	f := n.finds("network-pods", doctor.Problem, "is kube-proxy", "route to the API server")
	if size := len(strings.Join(f.Evidence, "")); size > 1000 {
		t.Errorf("%d bytes of evidence", size)
	}
}

// doctor must not block on a log that is a pipe.
func TestALogThatIsAPipeIsLeftAlone(t *testing.T) {
	n := newNode(t, rig.Options{})
	options := rig.PodOptions{Namespace: "kube-system", Name: "kube-proxy-x"}
	n.container(options.Namespace, options.Name, runs("kube-proxy", 0, "exit 1"))
	log := n.rig.PodConfig(options).LogDirectory + "/kube-proxy.log"
	harness.Check(t, os.Remove(log))
	n.run("mkfifo", log)
	n.finds("network-pods", doctor.Problem, "is kube-proxy")
}
