package gather

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

func TestLocks(t *testing.T) {
	const file = "08:01:1234"
	got := statesOf([]procfs.Lock{
		{Kind: "POSIX", PID: 101, File: "00:2f:7"},
		{Kind: "FLOCK", PID: 708, File: file},
		{Kind: "FLOCK", PID: 709, File: file, Waits: true},
		{Kind: "FLOCK", PID: 710, File: file, Waits: true},
		{Kind: "LEASE", PID: 5, File: file},
	}, map[string]string{file: "/run/xtables.lock"})
	want := map[string]lockState{"/run/xtables.lock": {holder: 708, waiters: map[int]bool{709: true, 710: true}}}
	harness.DeepEqual(t, got, want)
}

func TestUnixSockets(t *testing.T) {
	const table = `Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 20103 /run/nri/nri.sock
0000000000000000: 00000003 00000000 00000000 0001 03 20104 /run/other.sock
`
	is := func(table, path string) bool { return listens(t.Context(), strings.NewReader(table), path) }
	if !is(table, "/run/nri/nri.sock") || is(table, "/run/other.sock") || is("", "/run/nri/nri.sock") {
		t.Error("who listens was not told right")
	}
}

func TestLastLine(t *testing.T) {
	for end, want := range map[string]string{
		"":     "",
		"\n\n": "",
		"2026-11-20T16:00:00.1Z stdout F all is well\n2026-11-20T16:00:01.1Z stderr F it is not\n": "it is not",
		"2026-11-20T16:00:01.1Z stderr P cut here\n":                                               "cut here",
		"no CRI line\x1b[2J": "no CRI line",
		"2026-11-20T16:00:01.1Z stderr F no \x1b[31;1mroute\x1b[0m to \x07it": `no route to \x07it`,
		// Logs may hold secrets.
		"login failed, token=eyJhbGciOiJIUzI1NiJ9.e30.abc": "login failed, token=‹text 28›",
		`dial tcp 10.96.0.1:443: i/o timeout`:              `dial tcp 10.96.0.1:443: i/o timeout`,
	} {
		harness.Equal(t, parseLastLine(end), want, end)
	}
}

func TestFlags(t *testing.T) {
	got := flags([]string{"cilium-agent", "--kube-proxy-replacement", "strict", "--enable-node-port", "--bpf-lb-sock=false", "--other=true"}, fact.CiliumSettings()...)
	want := []fact.Setting{{Key: "kube-proxy-replacement", Value: "strict", From: "command line"}, {Key: "enable-node-port", Value: "true", From: "command line"}}
	harness.DeepEqual(t, got, want)
	if !got[0].Replaces() || !got[1].Replaces() || (fact.Setting{Value: "partial"}).Replaces() {
		t.Error("what switches it on was not told right")
	}
}

// A ConfigMap is a link to a link; none leads out of the container.
func TestSettingsOfAContainer(t *testing.T) {
	root, outside := t.TempDir(), filepath.Join(t.TempDir(), "true")
	harness.Check(t, os.WriteFile(outside, []byte("true"), 0o600))
	dir := filepath.Join(root, "tmp/cilium/config-map")
	harness.Check(t, os.MkdirAll(filepath.Join(dir, "..v1"), 0o755))
	harness.Check(t, os.WriteFile(filepath.Join(dir, "..v1/kube-proxy-replacement"), []byte("true\n"), 0o644))
	harness.Check(t, os.Symlink("..v1", filepath.Join(dir, "..data")))
	harness.Check(t, os.Symlink("..data/kube-proxy-replacement", filepath.Join(dir, "kube-proxy-replacement")))
	harness.Check(t, os.Symlink(outside, filepath.Join(dir, "enable-node-port")))
	want := []fact.Setting{{Key: "kube-proxy-replacement", Value: "true", From: "its ConfigMap, " + filepath.Join(dir, "kube-proxy-replacement")}}
	harness.DeepEqual(t, settingsIn(root, "/tmp/cilium/config-map"), want)
	device := filepath.Join(dir, "enable-node-port")
	harness.Check(t, os.Remove(device))
	harness.Check(t, unix.Mkfifo(device, 0o600))
	if harness.Opened(t, device, func() { harness.DeepEqual(t, settingsIn(root, "/tmp/cilium/config-map"), want) }) {
		t.Error("a device in the container was opened")
	}
	harness.Check(t, os.WriteFile(filepath.Join(root, "config.conf"), []byte("clientConnection:\n  clusterCIDR: 10.1.0.0/16\nclusterCIDR: \"10.244.0.0/16,fd00::/48\"\nmode: \"\"\n"), 0o644))
	harness.DeepEqual(t, clusterCIDR(root, "/config.conf"), []fact.Setting{{Key: "cluster-cidr", Value: "10.244.0.0/16,fd00::/48", From: "configuration, /config.conf"}})
	harness.Equal(t, len(clusterCIDR(root, "/nothing")), 0)
	got := mountedSettings([]*cri.Mount{{HostPath: filepath.Join(root, "tmp"), ContainerPath: "/tmp"}, {HostPath: root, ContainerPath: "/tm"}})
	if len(got) != 1 || !got[0].Replaces() {
		t.Errorf("%+v", got)
	}
}

// Of legacy iptables, or any bytes.
func FuzzLegacyTable(f *testing.F) {
	v := ipVersions[0]
	entry := func(target string, name string) []byte {
		b := make([]byte, 112+32+32)
		binary.NativeEndian.PutUint16(b[v.targetAt:], 112)
		binary.NativeEndian.PutUint16(b[v.targetAt+2:], uint16(len(b)))
		copy(b[112+2:], target)
		copy(b[112+32:], name)
		return b
	}
	table := slices.Concat(entry("", ""), entry("ERROR", "KUBE-SERVICES"), entry("MASQUERADE", "x"), entry("", ""), entry("ERROR", "CNI-DN-a"), entry("", ""), entry("ERROR", "ERROR"))
	if got := v.parse(table); !slices.Equal(got, []fact.Chain{{Name: "KUBE-SERVICES", Rules: 1}, {Name: "CNI-DN-a"}}) {
		f.Fatalf("%+v", got)
	}
	f.Add(table)
	f.Fuzz(func(_ *testing.T, b []byte) {
		for _, v := range ipVersions {
			v.parse(b)
		}
	})
}

// With secrets, or any bytes.
func FuzzNetworksAsLoaded(f *testing.F) {
	const loaded = `{"PluginDirs":["/opt/cni/bin"],"PluginConfDir":"/etc/cni/net.d","PluginMaxConfNum":1,"Networks":[
	{"Config":{"Name":"cni-loopback","Plugins":[{"Source":"{\"type\":\"loopback\"}"}]}},
	{"Config":{"Name":"cbr0","CNIVersion":"1.0.0","Source":"x","Plugins":[
		{"Source":"{\"type\":\"flannel\",\"password\":\"canary\"}"},
		{"Source":"{\"type\":\"bridge\",\"bridge\":\"cni0\",\"ipam\":{\"type\":\"host-local\",\"dataDir\":\"/d\",\"ranges\":[[{\"subnet\":\"10.1.0.0/24\"}]]}}"}]}}]}`
	var c fact.CRI
	harness.Check(f, parseLoaded(&c, []byte(loaded)))
	l := c.Loaded[0]
	if !c.NeedsLoopback || len(c.Loaded) != 1 || !slices.Equal(l.Delegates, []string{"bridge", "host-local"}) || l.Subnets[0].String() != "10.1.0.0/24" ||
		!slices.Equal(l.Plugins, []event.Plugin{{Type: "flannel"}, {Type: "bridge", IPAM: "host-local"}}) || l.DataDirs[0] != "/d" {
		f.Fatalf("%+v", c)
	}
	f.Add(loaded)
	f.Fuzz(func(_ *testing.T, s string) { _ = parseLoaded(new(fact.CRI), []byte(s)) })
}

// endless ends a context after a megabyte of a user's sockets.
type endless struct {
	read int
	end  func()
}

func (e *endless) Read(b []byte) (int, error) {
	if e.read += len(b); e.read > 1<<20 {
		e.end()
	}
	const line = "0: 00000002 00000000 00010000 0001 01 1 /tmp/nri.sock\n"
	return copy(b, line), nil
}

// The whole table was read into memory once.
func TestATableOfSocketsIsReadUntilTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if listens(ctx, &endless{end: cancel}, "/run/nri/nri.sock") {
		t.Error("a process listens")
	}
}
