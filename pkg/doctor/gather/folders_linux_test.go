package gather

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

const crioConf = `[crio]
root = "/var/lib/containers/storage"
[crio.network]
network_dir = "/srv/cni/net.d/"
plugin_dirs = ["/srv/cni/bin/", "/opt/cni/bin"]
cni_default_network = "pods"
`

// Over its own socket, the configuration in effect.
func TestCRIOSaysItsFolders(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "crio.sock")
	l := harness.Must(net.Listen("unix", socket))(t)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/config" {
			_, _ = w.Write([]byte(crioConf))
		}
	})}
	go server.Serve(l) //nolint:errcheck // it ends with the test
	defer server.Close()
	c := fact.CRI{ConfDir: "/etc/cni/net.d", BinDirs: []string{"/opt/cni/bin"}}
	harness.Check(t, crioFolders(t.Context(), socket, "/nowhere", &c))
	if c.ConfDir != "/srv/cni/net.d" || !reflect.DeepEqual(c.BinDirs, []string{"/srv/cni/bin", "/opt/cni/bin"}) || c.Default != "pods" {
		t.Errorf("%+v", c)
	}
}

// Later files override earlier ones.
func TestCRIOFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		file := filepath.Join(dir, name)
		harness.Check(t, os.MkdirAll(filepath.Dir(file), 0o755))
		harness.Check(t, os.WriteFile(file, []byte(text), 0o644))
	}
	if conf, err := crioFiles(dir); err != nil || conf.Crio.Network.NetworkDir != "" {
		t.Errorf("no files: %+v %v", conf, err)
	}
	put("crio.conf", crioConf)
	put("crio.conf.d/20-b.conf", "[crio.network]\nnetwork_dir = \"/b\"\n")
	put("crio.conf.d/10-a.conf", "[crio.network]\nnetwork_dir = \"/a\"\n")
	harness.Check(t, os.Symlink("/dev/null", filepath.Join(dir, "crio.conf.d/30-off.conf")))
	conf, err := crioFiles(dir)
	if err != nil || conf.Crio.Network.NetworkDir != "/b" || len(conf.Crio.Network.PluginDirs) != 2 {
		t.Errorf("%+v %v", conf, err)
	}
}

func TestWhatTheFolderHasIsTakenForLoaded(t *testing.T) {
	dir := t.TempDir()
	list := `{"name":"pods","cniVersion":"1.0.0","plugins":[{"type":"bridge","bridge":"b0","ipam":{"type":"host-local","subnet":"10.1.0.0/24"}},{"type":"x","socket":"/run/x/x.sock"}]}`
	harness.Check(t, os.WriteFile(filepath.Join(dir, "10.conflist"), []byte(list), 0o644))
	all := loadedFrom(dir, []event.Network{{Name: "pods", File: "10.conflist"}})
	if len(all) != 1 || len(all[0].Plugins) != 2 || len(all[0].Subnets) != 1 || len(all[0].Bridges) != 1 || len(all[0].Asks) != 1 || all[0].Asks[0].Address != "/run/x/x.sock" {
		t.Errorf("%+v", all)
	}
}

func TestAProcessInAContainer(t *testing.T) {
	id := strings.Repeat("0a", 32)
	for text, want := range map[string]string{
		"0::/kubepods/burstable/pod1/" + id + "\n":                                 id,
		"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope\n": id,
		"0::/kubepods.slice/kubepods-pod1.slice/crio-" + id + ".scope/container\n": id,
		"0::/system.slice/antrea.service\n":                                        "",
		"0::/\n":                                                                   "",
	} {
		harness.Equal(t, firstGroup(containerID, text), want, text)
	}
}

func TestTheUnitOfACgroup(t *testing.T) {
	for text, want := range map[string]string{
		"0::/system.slice/containerd.service\n":                                  "containerd",
		"12:pids:/system.slice/k3s.service\n0::/system.slice/k3s.service\n":      "k3s",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n": "x",
		"0::/\n": "",
	} {
		harness.Equal(t, firstGroup(service, text), want, text)
	}
}
