//go:build linux

package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	harness.Check(t, os.WriteFile(file, []byte(text), 0o644))
}

const other = `{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"bridge","bridge":"cni-other","ipam":{"type":"host-local","subnet":"10.99.0.0/24"}}]}`

func TestABadFileThatComesFirstIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	bad := filepath.Join(n.rig.CNIConfDir(), "00-bad.conflist")
	write(t, bad, "{\n\"name\": secret")
	harness.Until(n, "the network is not ready", func() bool { return len(of(n.examine(), "network-ready")) > 0 })
	n.finds("cni-folder", doctor.Problem, "00-bad.conflist", "line 2", "lastCNILoadStatus", "is not valid JSON, so containerd loads no network")
	n.finds("network-ready", doctor.Problem, "00-bad.conflist", "NetworkReady=false")
	harness.Check(t, os.Remove(bad))
	harness.Until(n, "the network is ready", func() bool { return len(of(n.examine(), "network-ready")) == 0 })
	n.silent("cni-folder", "network-ready", "cni-loaded")
}

// A list of plugins needs a name that ends in .conflist.
func TestAListInAFileForOnePlugin(t *testing.T) {
	n := newNode(t, rig.Options{})
	write(t, filepath.Join(n.rig.CNIConfDir(), "00-list.conf"), other)
	n.finds("cni-folder", doctor.Problem, "missing 'type'", "its name must end in .conflist")
}

// A CNI wrote its configuration into a directory that the runtime does not read.
func TestAConfigurationInAnotherFolder(t *testing.T) {
	const usual = "/etc/cni/net.d"
	n := newNode(t, rig.Options{Networks: []rig.Network{}, Covers: []string{usual}})
	write(t, filepath.Join(n.rig.Covered(usual), "10-other.conflist"), other)
	n.finds("cni-folder", doctor.Problem, "contains no CNI configuration", "does not read: "+usual+"/10-other.conflist")
	f := n.finds("network-ready", doctor.Problem, " but there is a CNI configuration in "+usual, "make it write into "+n.rig.CNIConfDir())
	if strings.HasPrefix(f.Remedy[0], "install") {
		t.Error(f.Remedy)
	}
}

func TestAnEmptyFolderIsFound(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	write(t, filepath.Join(n.rig.CNIConfDir(), "10-calico.conflist.disabled"), other)
	n.finds("cni-folder", doctor.Problem, "contains no CNI configuration", "10-calico.conflist.disabled", "so it ignores ")
	n.finds("network-ready", doctor.Problem, "no CNI configuration has been written", "no container mounts that directory", "cni plugin not initialized")
}

func TestADeletedFolderIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	dir := n.rig.CNIConfDir()
	harness.Check(t, os.RemoveAll(dir))
	n.finds("cni-folder", doctor.Problem, dir+" does not exist", "systemctl restart containerd")
	harness.Until(n, "containerd is named", func() bool { return len(of(n.examine(), "runtime")) > 0 })
	n.finds("runtime", doctor.Problem, "does not answer", "containerd stops when its CNI directory is removed")

	// A directory that was made again changes nothing: only a restart has it read.
	harness.Check(t, os.Mkdir(dir, 0o700))
	write(t, filepath.Join(dir, "10-other.conflist"), other)
	n.finds("runtime", doctor.Problem, "does not answer", "directory "+dir+" was made again at ", "systemctl restart containerd")
	harness.Check(t, n.rig.RestartContainerd(n.ctx))
	n.silent("runtime", "cni-folder", "network-ready")
}

// containerd does not read the directory again if a file is moved there. The test runs the remedy.
func TestAFileThatWasMovedIntoTheFolderIsFound(t *testing.T) {
	n := newNode(t, rig.Options{})
	n.silent("cni-loaded")
	aside := filepath.Join(n.rig.Dir(), "05-other.conflist")
	write(t, aside, other)
	harness.Check(t, os.Rename(aside, filepath.Join(n.rig.CNIConfDir(), "05-other.conflist")))
	n.finds("cni-loaded", doctor.Warning, "the directory contains: other bridge(host-local) from 05-other.conflist", "containerd has loaded: "+n.rig.Networks()[0].Name, ".reload")
	reload := filepath.Join(n.rig.CNIConfDir(), ".reload")
	n.run("sh", "-c", "touch "+reload+" && rm "+reload)
	harness.Until(n, "everything is loaded", func() bool { return len(of(n.examine(), "cni-loaded")) == 0 })
	n.silent("cni-loaded", "network-ready")
}

// File names decide which CNI configuration wins. A warning is due only if the agent of the other one runs.
func TestAConfigurationThatIsIgnoredIsNamed(t *testing.T) {
	n := newNode(t, rig.Options{})
	write(t, filepath.Join(n.rig.CNIConfDir(), "99-calico.conflist"),
		`{"cniVersion":"1.0.0","name":"k8s-pod-network","plugins":[{"type":"calico","ipam":{"type":"calico-ipam"}}]}`)
	n.finds("cni-order", doctor.Note, "ignored: k8s-pod-network calico(calico-ipam) from 99-calico.conflist")
	n.silent("cni-binaries")
	n.start("calico-node", n.named("calico-node"), "600")
	harness.Until(n, "the order is a warning", func() bool { return of(n.examine(), "cni-order")[0].Level == doctor.Warning })
	n.finds("cni-order", doctor.Warning, "Calico runs here", "is calico-node", "99-calico.conflist is ignored")
}
