package gather

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/runtime"
	"github.com/cniscope/cniscope/test/harness"
)

const (
	crioSocket = "/run/crio/crio.sock"
	k3sSocket  = "/run/k3s/containerd/containerd.sock"
)

// rootWith is a tree with files.
func rootWith(t *testing.T, files ...string) view {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		file := filepath.Join(root, f)
		harness.Check(t, errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("\x7fELF"), 0o755)))
	}
	return view{root: root, sure: true}
}

// It is never called by another's name.
func TestWhichRuntimeItIs(t *testing.T) {
	nothing := rootWith(t)
	criO := func(address string) bool { return address == crioSocket }
	for name, test := range map[string]struct {
		address    string
		here, node view
		socket     string
		want       fact.Runtime
	}{
		"none at all":                    {"", nothing, nothing, runtime.DefaultAddress, fact.Runtime{Absent: true}},
		"none that we see":               {"", nothing, view{root: nothing.root}, runtime.DefaultAddress, fact.Runtime{}},
		"CRI-O":                          {"", rootWith(t, crioSocket), nothing, crioSocket, fact.Runtime{Name: "cri-o", Unit: "crio"}},
		"CRI-O is installed":             {"", nothing, rootWith(t, "/usr/bin/crio"), crioSocket, fact.Runtime{Name: "cri-o", Unit: "crio"}},
		"k3s is installed":               {"", nothing, rootWith(t, "/usr/local/bin/k3s"), k3sSocket, fact.Runtime{Name: "containerd", Unit: "k3s"}},
		"two are installed":              {"", nothing, rootWith(t, "/usr/bin/crio", "/usr/bin/containerd"), runtime.DefaultAddress, fact.Runtime{}},
		"CRI-O beside Docker":            {"", rootWith(t, crioSocket, runtime.DefaultAddress), nothing, crioSocket, fact.Runtime{Name: "cri-o", Unit: "crio", Others: []string{runtime.DefaultAddress}}},
		"two, and neither speaks":        {"", rootWith(t, k3sSocket, runtime.DefaultAddress), nothing, runtime.DefaultAddress, fact.Runtime{Name: "containerd", Unit: "containerd", Others: []string{k3sSocket}}},
		"in a container without it":      {"", nothing, rootWith(t, k3sSocket), k3sSocket, fact.Runtime{Name: "containerd", Unit: "k3s", Hidden: k3sSocket}},
		"the operator says which":        {"/srv/crio.sock", rootWith(t, runtime.DefaultAddress), nothing, "/srv/crio.sock", fact.Runtime{Name: "cri-o", Unit: "crio"}},
		"the operator's own, unknown":    {"/srv/mine.sock", nothing, nothing, "/srv/mine.sock", fact.Runtime{}},
		"the usual one, said by hand":    {runtime.DefaultAddress, rootWith(t, crioSocket), nothing, crioSocket, fact.Runtime{Name: "cri-o", Unit: "crio"}},
		"its folder alone is no sign":    {"", rootWith(t, "/run/crio/x"), rootWith(t, "/etc/crio/crio.conf"), runtime.DefaultAddress, fact.Runtime{Absent: true}},
		"Docker's runtime of Kubernetes": {"", rootWith(t, "/run/cri-dockerd.sock"), nothing, "/run/cri-dockerd.sock", fact.Runtime{Name: "docker", Unit: "cri-docker"}},
	} {
		socket, got := seek(test.address, test.here, test.node, criO)
		harness.Equal(t, socket, test.socket, name)
		harness.DeepEqual(t, got, test.want, name)
	}
}

// A file may be missing only for us.
func TestWhatCannotBeSeenIsNotMissing(t *testing.T) {
	unsure := rootWith(t, "/opt/cni/bin/here")
	unsure.sure = false
	if _, err := readFolder(unsure, "/etc/cni/net.d", 1); !errors.Is(err, errUnseen) {
		t.Errorf("a folder: %v", err)
	}
	f := new(fact.Facts)
	f.CRI.Value.BinDirs = []string{"/opt/cni/bin"}
	f.CRI.Value.Loaded = []fact.Loaded{{Delegates: []string{"here"}}}
	if _, err := programs(f, unsure); err != nil {
		t.Errorf("a program that is there: %v", err)
	}
	f.CRI.Value.Loaded[0].Delegates = []string{"here", "away"}
	if _, err := programs(f, unsure); !errors.Is(err, errUnseen) {
		t.Errorf("a program: %v", err)
	}
	unsure.sure = true
	if found, err := programs(f, unsure); err != nil || found[1].Wrong == nil {
		t.Errorf("a program, of a view that is sure: %v %v", found, err)
	}
}

// They lead to places of the node.
func TestLinksOfAnotherRoot(t *testing.T) {
	v := rootWith(t, "/usr/lib/cni/bridge")
	harness.Check(t, errors.Join(os.MkdirAll(filepath.Join(v.root, "opt/cni"), 0o755), os.Symlink("/usr/lib/cni", filepath.Join(v.root, "opt/cni/bin"))))
	if wrong, there := wrongWith(v, "bridge", []string{"/opt/cni/bin"}); wrong != nil || !there {
		t.Errorf("%q %v", wrong, there)
	}
	in := folders{v, map[string]string{}}
	for _, file := range []string{"/opt/cni/bin/bridge", "/opt/cni/bin/none", "/opt/cni/bin/bridge"} {
		harness.Equal(t, in.path(file), filepath.Join(v.root, "usr/lib/cni", filepath.Base(file)), "resolved once")
	}
	harness.Equal(t, in.path("/opt/cni/bin"), filepath.Join(v.root, "opt/cni/bin"), "itself a link")
}
