//go:build linux

package runtimes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// CRI-O uses containerd's CNI library and the same NRI, so traces do not depend on the runtime.
func TestCRIO(t *testing.T) {
	n := start(t, rig.Options{CRIO: true, Plugins: map[string][]byte{
		"refuser": rig.Script(`[ $CNI_COMMAND = ADD ] && fail 11 "no address left in pool blue"`),
	}}, "")
	harness.Says(t, n.scope.LogText(), "NRI: registered", "trusted to run CNI plugins", "crio (pid", "networks="+n.rig.Networks()[0].Name)
	t.Run("doctor, install and status", func(t *testing.T) { n.in(t).tools() })
	t.Run("a pod comes and goes", func(t *testing.T) { n.in(t).pod() })
	t.Run("an ADD fails", func(t *testing.T) { n.in(t).refused() })
}

func (n *node) pod() {
	id, err := n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: "web", HostPorts: []rig.HostPort{{Host: 18099, Container: 80}}})
	harness.Check(n, err)
	harness.Check(n, n.rig.StopPod(n.ctx, id))
	for _, command := range []string{"ADD", "DEL"} {
		n.whole(n.call("web", command), map[string]string{
			"k8s.namespace.name": "shop", "k8s.pod.uid": "uid-shop-web", "sandbox.id": id,
			"cni.name": n.rig.Networks()[0].Name, "cniscope.system_calls_seen": "true", "cniscope.partial": "",
		})
	}
}

// tools checks that the commands name CRI-O and its directories, and not containerd.
func (n *node) tools() {
	about := func(name, said string, wants ...string) {
		n.Helper()
		harness.Says(n, said, wants...)
		if strings.Contains(said, "containerd") {
			n.Errorf("%s speaks of containerd:\n%s", name, said)
		}
	}
	// As kubeadm demands; the rig restores it.
	harness.Check(n, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600))
	said, _ := n.tool("doctor", "--config", n.scope.Config())
	about("doctor", said)
	for _, check := range []string{"? cni-binaries", "? cni-loaded", "? cni-order", "? network-ready", "✗", "? leftovers", "? overlap"} {
		if strings.Contains(said, check) {
			n.Errorf("doctor on a sound node says %q:\n%s", check, said)
		}
	}

	list := filepath.Join(n.rig.CNIConfDir(), "10-"+n.rig.Networks()[0].Name+".conflist")
	harness.Check(n, os.Rename(list, list+".away"))
	harness.Eventually(n, func() error {
		said, _ = n.tool("doctor", "--config", n.scope.Config())
		if !strings.Contains(said, "✗ network-ready") && !strings.Contains(said, "✗ cni-folder") {
			return fmt.Errorf("doctor finds nothing:\n%s", said)
		}
		return nil
	})
	about("doctor", said, n.rig.CNIConfDir())
	harness.Check(n, os.Rename(list+".away", list))
	harness.Check(n, n.rig.SetNetworks(n.ctx, rig.Network{Plugins: []rig.Plugin{rig.Bridge(), rig.Portmap()}}))

	// cniscope install looks for files of a node; this tree has those of CRI-O.
	tree := n.TempDir()
	harness.Check(n, os.MkdirAll(filepath.Join(tree, "etc", "crio", "crio.conf.d"), 0o755))
	said, code := n.tool("install", "--dry-run", "--root", tree)
	if at := strings.LastIndex(said, "CRI-O"); code != 0 || at < 0 || !strings.Contains(said[at:], "enable_nri") {
		n.Errorf("install: %d:\n%s", code, said)
	}
}

// refused checks that a failed ADD has a reason, though NRI never reports such a pod.
func (n *node) refused() {
	harness.Check(n, n.rig.SetNetworks(n.ctx, rig.Network{Name: "blue", Plugins: []rig.Plugin{rig.Bridge(), rig.Test("refuser")}}))
	if _, err := n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: "none"}); err == nil {
		n.Fatal("the pod came up")
	}
	call := n.call("none", "ADD")
	if said := call.Status.Message; !strings.Contains(said, "plugin refuser failed (code ") || !strings.Contains(said, "no address left in pool blue") {
		n.Errorf("the call says %q", said)
	}
}
