//go:build linux

package scenarios

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// recorded is a recording of what the scene does from now on. The returned function ends it, and returns its file.
func (s *scene) recorded() (end func() string) {
	s.Helper()
	file := filepath.Join(s.TempDir(), "scene.rec")
	log := filepath.Join(s.TempDir(), "recorder.log")
	out, err := os.Create(log)
	harness.Check(s.T, err)
	defer out.Close()
	recorder := exec.Command(program, "record", file, "--config", s.scope.Config())
	recorder.Stderr = out
	harness.Check(s.T, recorder.Start())
	harness.Until(s, "it records", func() bool {
		said, _ := os.ReadFile(log)
		return bytes.Contains(said, []byte("recording what"))
	})
	return func() string {
		s.Helper()
		harness.Check(s.T, recorder.Process.Signal(os.Interrupt))
		harness.Check(s.T, recorder.Wait())
		return file
	}
}

// replayed is recorded. The returned function checks that the replay has the causes, verdicts and remedies that were
// exported.
func (s *scene) replayed() (same func(calls ...*call)) {
	s.Helper()
	end := s.recorded()
	return func(calls ...*call) {
		s.Helper()
		replay, err := exec.CommandContext(s.ctx, program, "show", "--format", "json", end()).Output()
		harness.Check(s.T, err)
		for _, c := range calls {
			for _, key := range []string{"cniscope.verdict", "cniscope.remedy"} {
				harness.Says(s.T, string(replay), strings.ReplaceAll(c.Attrs[key], `"`, `\"`))
			}
		}
	}
}

// What the node looks like after a failed call decides its remedy, which helps.
func TestAFailedCallIsLookedInto(t *testing.T) {
	onAdd := func(says string) []byte { return rig.Script(`[ "$CNI_COMMAND" != ADD ] || fail 999 '` + says + `'`) }
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"multus": onAdd("Multus: [shop/pod]: error getting pod: Unauthorized"),
		"ipvlan": onAdd("failed to create ipvlan: operation not supported"),
	}}, "[leaks]\nafter = \"2s\"\n")
	same := s.replayed()
	var failed []*call
	fails := func(id string, says []string, remedy string) {
		t.Helper()
		c := incident{id: id, cause: "plugin_error", says: says, remedy: remedy}
		call := s.add(rig.PodOptions{}, true)
		c.judged(call, s)
		failed = append(failed, call)
	}
	bridge := s.network("pods", rig.Bridge()).Bridge
	const other = "10.244.1.1/24"
	const differs = "already has an IP address different from"

	s.run("ip", "link", "add", bridge, "type", "bridge")
	s.run("ip", "addr", "add", other, "dev", bridge)
	fails("bridge-has-another-address", []string{differs, bridge + " has " + other + " and no port"}, "run ip link delete "+bridge+", because this bridge has no port")
	s.run("ip", "link", "delete", bridge)
	s.add(rig.PodOptions{}, false)

	id := harness.Must(s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "stays-0"}))(t)
	s.run("ip", "addr", "flush", "dev", bridge, "scope", "global")
	s.run("ip", "addr", "add", other, "dev", bridge)
	fails("bridge-of-a-pod", []string{differs, bridge + " has " + other + " and 1 port, 1 of pods: shop/stays-0"}, "move the pods off "+bridge)
	harness.Check(t, s.rig.StopPod(s.ctx, id))
	s.run("ip", "link", "delete", bridge)

	small := func(n rig.Net) rig.Conf {
		return rig.Bridge(rig.Conf{"ipam": rig.HostLocal(n.DataDir, netip.PrefixFrom(n.Subnet.Addr(), 30))})(n)
	}
	network := s.network("small", small)
	const none = "no IP addresses available"
	gone := harness.Must(s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "gone-0"}))(t)
	fails("range-too-small", []string{none, "; network \"small\" has 1 lease"}, "give network \"small\" a range larger")
	harness.Check(t, s.rig.StopPod(s.ctx, gone))
	lease := filepath.Join(network.DataDir, "small", network.Subnet.Addr().Next().Next().String())
	harness.Check(t, os.WriteFile(lease, []byte(strings.Repeat("5ca1ab1e", 8)+"\r\neth0"), 0o644))
	long := time.Now().Add(-time.Hour)
	harness.Check(t, os.Chtimes(lease, long, long))
	fails("stale-leases", []string{none, "; network \"small\" has 1 lease, 1 of them stale"}, "run cniscope doctor: leaked-leases")

	file := filepath.Join(t.TempDir(), "multus.kubeconfig")
	for until, says := range map[time.Duration]string{-3 * time.Hour: " expired 3h0m", time.Hour: " is valid for another "} {
		claims := fmt.Sprintf(`{"exp":%d,"sub":"multus"}`, time.Now().Add(until).Unix())
		harness.Check(t, os.WriteFile(file, []byte("token: e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".c2ln\n"), 0o600))
		s.network(fmt.Sprintf("token%d", until/time.Hour+3), rig.Use(rig.Conf{"type": "multus", "kubeconfig": file}))
		fails("token", []string{"Unauthorized", "; the token in multus.kubeconfig" + says}, "restart Multus")
	}

	s.network("module", rig.Test("ipvlan"))
	fails("module", []string{"operation not supported", "ipvlan"}, "")

	same(failed...)
}
