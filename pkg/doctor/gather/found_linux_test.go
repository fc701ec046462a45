package gather

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/test/harness"
)

// Of a token only its end is read; a link, a FIFO and a large file are not opened.
func TestOnlyTheEndOfATokenIsRead(t *testing.T) {
	dir := t.TempDir()
	jwt := func(claims string) string {
		return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2lnbmF0dXJl"
	}
	write := func(name, content string) string {
		file := filepath.Join(dir, name)
		harness.Check(t, os.WriteFile(file, []byte(content), 0o600))
		return file
	}
	of := func(name, token string) string {
		return write(name, "apiVersion: v1\nusers:\n- name: multus\n  user:\n    token: \""+token+"\"\n")
	}
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	harness.Check(t, os.Symlink(of("target", jwt(`{"exp":7}`)), link))
	harness.Check(t, unix.Mkfifo(fifo, 0o600))
	for file, want := range map[string]string{
		of("a", jwt(`{"exp":1700000000,"sub":"secret"}`)): "1700000000",
		of("b", jwt(`{"exp":1.7e9}`)):                     "1700000000",
		of("c", jwt(`{"sub":"secret"}`)):                  "0",
		of("d", jwt(`{"exp":"soon"}`)):                    "its token cannot be decoded",
		of("e", jwt(`{"exp":-5}`)):                        "its token has no valid end",
		of("f", "opaque"):                                 "its file has no JSON web token",
		write("h", "users:\n- name: multus\n  user:\n    tokenFile: "+write("token", jwt(`{"exp":8}`))+"\n"): "8",
		write("i", "users:\n- name: multus\n  user:\n    tokenFile: "+fifo+"\n"):                             "its file cannot be read",
		write("g", strings.Repeat(" ", kubeconfigMax+1)):                                                     "its file cannot be read",
		filepath.Join(dir, "none"): "its file cannot be read",
		link:                       "its file cannot be read",
		fifo:                       "its file cannot be read",
	} {
		found, err := token(view{sure: true}, file)
		got := fmt.Sprint(found.Expires)
		if err != nil {
			got = err.Error()
		}
		harness.Equal(t, got, want, file)
		harness.Equal(t, found.Name, filepath.Base(file))
	}
}

// The kernel's modules are those of the node's root.
func TestWhetherTheKernelHasAModule(t *testing.T) {
	release := harness.Must(os.ReadFile("/proc/sys/kernel/osrelease"))(t)
	root := t.TempDir()
	at := func(names ...string) string { return filepath.Join(append([]string{root, "lib/modules"}, names...)...) }
	sees := view{root: root, sure: true}
	state := func(want event.ModuleState, names ...string) {
		t.Helper()
		found := harness.Must(module(sees, names))(t)
		harness.Equal(t, found.Module, want, names)
	}
	if found, err := module(sees, []string{"cnivlan"}); err == nil { // it may be part of the kernel
		t.Errorf("without an index: %+v", found)
	}
	harness.Check(t, os.MkdirAll(at("4.0.0"), 0o755))
	state(event.ModuleRemoved, "cnivlan")
	dir := at(strings.TrimSpace(string(release)))
	harness.Check(t, os.MkdirAll(dir, 0o755))
	harness.Check(t, os.WriteFile(filepath.Join(dir, "modules.dep"), []byte("kernel/net/cni-vlan.ko.xz: kernel/net/stp.ko\n"), 0o600))
	harness.Check(t, os.WriteFile(filepath.Join(dir, "modules.builtin"), []byte("kernel/net/cni_bridge.ko\n"), 0o600))
	state(event.ModuleThere, "cni_vlan")
	state(event.ModuleLoaded, "cni_bridge")
	state(event.ModuleAbsent, "vlan")
	state(event.ModuleThere, "cni_bridge", "cni_vlan", "vlan") // the first that is missing
	if found, err := module(sees, []string{"../../etc"}); err == nil {
		t.Errorf("a path is taken for a module: %+v", found)
	}
}

// Leases are counted for the call's network; those of gone sandboxes are stale.
func TestStaleLeasesAreCounted(t *testing.T) {
	now := time.Now()
	f := &fact.Facts{Options: fact.Options{Leak: time.Minute}}
	f.Held.Value = leak.Look{
		Time: now, Alive: map[string]bool{"alive": true}, Total: map[string]int{"pods": 4, "other": 9},
		Leases: []leak.Lease{
			{Network: "pods", ContainerID: "alive", Since: now.Add(-time.Hour)},
			{Network: "pods", ContainerID: "gone", Since: now.Add(-time.Hour)},
			{Network: "pods", ContainerID: "begins", Since: now},
			{Network: "other", ContainerID: "gone", Since: now.Add(-time.Hour)},
		},
	}
	harness.DeepEqual(t, leases(f, "pods"), event.Found{Name: "pods", Leased: 4, Stale: 1})
}

// Before: a pipe beside the networks' folders held up the search for leaks for ever.
func TestAPipeAmongTheLeasesIsPassedOver(t *testing.T) {
	root := t.TempDir()
	networks := filepath.Join(root, "var/lib/cni/networks")
	harness.Check(t, os.MkdirAll(filepath.Join(networks, "pods"), 0o755))
	harness.Check(t, os.WriteFile(filepath.Join(networks, "pods/10.0.0.2"), []byte("a\neth0"), 0o600))
	harness.Check(t, unix.Mkfifo(filepath.Join(networks, "a"), 0o600))
	l := leak.Look{Total: map[string]int{}}
	harness.Check(t, readLeases(t.Context(), view{root: root, sure: true}, leaseFolders(&fact.Facts{}), &l))
	harness.Equal(t, len(l.Leases), 1, "leases")
	// Before: the leases of a /18 were read on, for a second, after a look's time.
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := readLeases(late, view{root: root, sure: true}, leaseFolders(&fact.Facts{}), &leak.Look{Total: map[string]int{}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its time: %v", err)
	}
}

// Of a bridge its addresses and ports are found, and the pods of these by the runtime's results.
func TestWhosePortsABridgeHas(t *testing.T) {
	alone(t)
	root := t.TempDir()
	results := filepath.Join(root, "var/lib/cni/results")
	harness.Check(t, os.MkdirAll(results, 0o755))
	harness.Check(t, os.WriteFile(filepath.Join(results, "pods-a-eth0"), []byte(`{"kind":"cniCacheV1","containerId":"a","ifName":"eth0",
		"networkName":"pods","cniArgs":[["K8S_POD_NAMESPACE","shop"],["K8S_POD_NAME","web-0"]],
		"result":{"interfaces":[{"name":"cni0"},{"name":"veth0"},{"name":"eth0","sandbox":"/run/netns/x"}]}}`), 0o600))
	sees := view{root: root, sure: true}
	found := []event.Found{{Name: "cni0"}, {Name: "veth1"}, {Name: "cni1"}}
	shell(t, "ip link add cni0 type bridge; ip addr add 10.244.1.1/24 dev cni0; ip link add veth0 type veth peer name peer0; "+
		"ip link set veth0 master cni0; ip link add veth1 type veth peer name peer1; ip link set veth1 master cni0")
	for i := range found {
		harness.Check(t, attached(sees, &found[i]))
	}
	harness.DeepEqual(t, found, []event.Found{
		{
			Name: "cni0", Type: "bridge", Addresses: []string{"10.244.1.1/24"}, Ports: 2,
			OfPods: 1, Pods: []event.Pod{{Namespace: "shop", Name: "web-0"}}, Others: []string{"veth1"},
		},
		{Name: "veth1", Type: "veth", Master: "cni0", MasterType: "bridge"},
		{Name: "cni1", Absent: true},
	})
}

func TestWhetherAProcessRuns(t *testing.T) {
	const name = "cni-does-act"
	file := filepath.Join(t.TempDir(), name)
	harness.Check(t, os.Symlink(harness.Must(exec.LookPath("sleep"))(t), file))
	is := func(absent bool) {
		t.Helper()
		f := Found(t.Context(), fact.Options{Patience: time.Minute}, event.Want{Kind: event.FoundProcess, Name: name})
		harness.DeepEqual(t, f, &event.Found{Kind: event.FoundProcess, Name: name, Absent: absent})
	}
	is(true)
	runs := exec.Command(file, "60")
	harness.Check(t, runs.Start())
	is(false)
	harness.Check(t, runs.Process.Kill())
	harness.Until(t, "it is a zombie", func() bool {
		stat, err := procfs.StatOf(runs.Process.Pid)
		return err == nil && stat.Zombie()
	})
	is(true)
	_ = runs.Wait()
}
