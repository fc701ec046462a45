//go:build linux

package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func (n *node) aged(id string, age time.Duration) (results, leases []string) {
	n.Helper()
	root := fmt.Sprintf("/proc/%d/root", n.rig.ContainerdPID())
	results = harness.Must(filepath.Glob(root + "/var/lib/cni/results/*" + id + "*"))(n)
	net := n.rig.Networks()[0]
	for _, file := range harness.Must(filepath.Glob(filepath.Join(net.DataDir, net.Name, "[0-9a-f]*[0-9a-f]")))(n) {
		if text := harness.Must(os.ReadFile(file))(n); strings.Contains(string(text), id) {
			leases = append(leases, file)
		}
	}
	if len(results) == 0 || len(leases) == 0 {
		n.Fatalf("sandbox %s has no cached result or no lease: %v %v", id, results, leases)
	}
	then := time.Now().Add(-age)
	for _, file := range append(results, leases...) {
		harness.Check(n.T, os.Chtimes(file, then, then))
	}
	return results, leases
}

func there(files []string) (left []string) {
	for _, file := range files {
		if _, err := os.Lstat(file); err == nil {
			left = append(left, file)
		}
	}
	return left
}

// A containerd that lost its state never runs DEL. Existing pods and young files are not reported.
func TestWhatSandboxesThatAreGoneStillHold(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{{Name: "pods", Plugins: []rig.Plugin{rig.Bridge(), rig.Portmap()}}}})
	gone := harness.Must(n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: "web-0"}))(t)
	stays := harness.Must(n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: "web-1"}))(t)
	n.aged(stays, 48*time.Hour)
	n.silent("leaked-networks", "leaked-leases")
	harness.Check(t, n.rig.ForgetPods(n.ctx, gone))
	n.silent("leaked-networks", "leaked-leases")

	results, leases := n.aged(gone, 3*time.Hour)
	found := n.finds("leaked-networks", doctor.Warning, "1 network attachment", "DEL missing or failed", "eth0 of network \"pods\", pod shop/web-0, sandbox "+gone, "(3h0m0s)", "CNI_COMMAND=DEL")
	n.finds("leaked-leases", doctor.Warning, "removed sandboxes have held 1 of 2 addresses of network \"pods\"", filepath.Base(leases[0])+", leased to eth0 of sandbox "+gone, "run the command under leaked-networks, which also frees the address")

	// The remedy does what the runtime's DEL would have done.
	command := harness.Must(n.rig.Inside(""))(t)
	n.run(append(command, "sh", "-ec", found.Remedy[1])...)
	if left := append(there(leases), there([]string{results[len(results)-1]})...); len(left) > 0 {
		t.Errorf("the command leaves %v", left)
	}
	n.silent("leaked-networks", "leaked-leases")
}

// If the runtime loses its state in a reboot, only host-local's leases remain.
func TestLeasesOfBeforeARestart(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{{Name: "pods", Plugins: []rig.Plugin{rig.Bridge()}}}})
	gone := harness.Must(n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: "web-0"}))(t)
	harness.Check(t, n.rig.ForgetPods(n.ctx, gone))
	var up float64
	_, err := fmt.Sscan(string(harness.Must(os.ReadFile("/proc/uptime"))(t)), &up)
	harness.Check(t, err)
	results, leases := n.aged(gone, time.Duration(up)*time.Second+72*time.Hour)
	for _, file := range results {
		harness.Check(t, os.Remove(file))
	}
	found := n.finds("leaked-leases", doctor.Warning, "removed sandboxes have held 1 of 1 address of network \"pods\"", "1 lease from before the node", "days")
	n.silent("leaked-networks")
	n.run("sh", "-ec", found.Remedy[0])
	if left := there(leases); len(left) > 0 {
		t.Errorf("the command leaves %v", left)
	}
	n.silent("leaked-leases")

	// Without the CRI socket's answer, nothing is reported.
	write(t, leases[0], gone+"\r\neth0")
	then := time.Now().Add(-3 * time.Hour)
	harness.Check(t, os.Chtimes(leases[0], then, then))
	n.rig.StopContainerd()
	harness.Equal(t, state(n.examine(), "leaked-leases"), doctor.Unchecked, "without a runtime")
}

// Without its network's configuration a sandbox cannot be stopped, and the remedy brings it back from libcni's cache.
// A stop that fails because of a plugin, or of a file that containerd cannot read, does not get that remedy.
func TestASandboxThatCannotBeStopped(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{{Name: "pods", Plugins: []rig.Plugin{rig.Bridge(), rig.Test("odd")}}}, Plugins: map[string][]byte{"odd": rig.Script(`:`)}})
	s := scope.Observe(n.ctx, t, n.rig, scope.Options{Program: program, TOML: "[leaks]\nafter = \"5s\"\n"})
	var ids []string
	for _, name := range []string{"web-0", "web-1"} {
		ids = append(ids, harness.Must(n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: name}))(t))
	}
	stuck := func() []doctor.Finding {
		return slices.DeleteFunc(of(n.examine(), "leaked-networks"), func(f doctor.Finding) bool { return f.Level != doctor.Problem })
	}
	stop := func(says string) {
		t.Helper()
		if err := n.rig.StopPod(n.ctx, ids[0]); err == nil || !strings.Contains(err.Error(), says) {
			t.Fatalf("it was stopped, or failed otherwise: %v", err)
		}
	}
	harness.Check(t, n.rig.AddPlugin("odd", rig.Script(`[ $CNI_COMMAND = DEL ] && fail 11 "no"`)))
	stop("no")
	harness.Equal(t, len(stuck()), 0, "the plugin fails")
	harness.Check(t, n.rig.AddPlugin("odd", rig.Script(`:`)))
	bad := filepath.Join(n.rig.CNIConfDir(), "00-bad.conflist")
	write(t, bad, "{")
	harness.Until(n, "the network is not ready", func() bool { return len(of(n.examine(), "network-ready")) > 0 })
	stop("not initialized")
	harness.Equal(t, len(stuck()), 0, "the configuration is there")
	if said := s.LogText(); strings.Contains(said, "sandboxes cannot be stopped") {
		t.Error(said)
	}

	for _, file := range harness.Must(filepath.Glob(n.rig.CNIConfDir() + "/*"))(t) {
		harness.Check(t, os.Remove(file))
	}
	harness.Until(n, "the sandbox is found", func() bool { return len(stuck()) > 0 })
	f := n.finds("leaked-networks", doctor.Problem, "1 sandbox cannot be stopped", "DEL needs the missing configuration of network \"pods\"", "pod shop/web-0", "libcni's cache", ids[0])
	harness.Check(t, s.WaitLog(n.ctx, "sandboxes cannot be stopped", 1))
	out := harness.Must(exec.Command(program, "why", "shop/web-0", "--config", s.Config()).Output())(t)
	harness.Says(t, string(out), "CNI DEL eth0  failed", "1 sandbox cannot be stopped", "→ jq -r")

	command := harness.Must(n.rig.Inside(""))(t)
	n.run(append(command, "sh", "-ec", f.Remedy[0])...)
	harness.Until(n, "the network is ready", func() bool { return len(of(n.examine(), "network-ready")) == 0 })
	harness.Check(t, n.rig.StopPod(n.ctx, ids[0]))
	n.silent("leaked-networks")
}
