//go:build linux

package runtimes

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

type engineer struct {
	*node
	program string
	net     rig.Net
}

// nerdctlNamespace differs from the namespace of CRI.
const nerdctlNamespace = "cniscope"

// nerdctl runs CNI plugins from runc's OCI hook, without the runtime or NRI.
func TestNerdctl(t *testing.T) {
	tools := harness.Must(rig.Tools("nerdctl"))(t)
	n := start(t, rig.Options{HostMounts: true}, "[slow]\ncall = \"300ms\"\ncommand = \"1m\"\n")
	e := &engineer{node: n, program: filepath.Join(tools, "nerdctl")}
	t.Cleanup(e.tidy)
	e.ownNetwork()
	e.run("load", "--input", filepath.Join(n.rig.Dir(), "pause.tar"))
	t.Run("a container comes and goes", func(t *testing.T) { e.in(t).container() })
	t.Run("a held lock", func(t *testing.T) { e.in(t).lock() })
	t.Run("doctor", func(t *testing.T) { e.in(t).doctor() })
}

func (e engineer) in(t *testing.T) *engineer {
	e.node = e.node.in(t)
	return &e
}

func (e *engineer) run(args ...string) string {
	e.Helper()
	r := e.rig
	cmd := exec.CommandContext(e.ctx, e.program, append([]string{
		"--address", r.Socket(), "--namespace", nerdctlNamespace, "--cgroup-manager", "cgroupfs",
		"--cni-path", r.CNIBinDir(), "--cni-netconfpath", r.CNIConfDir(), "--data-root", filepath.Join(r.Dir(), "nerdctl"),
	}, args...)...)
	// A hook's commands inherit the environment.
	cmd.Env = []string{r.Env(), "PATH=" + os.Getenv("PATH"), "HOME=" + r.Dir(), "NERDCTL_TOML=" + filepath.Join(r.Dir(), "nerdctl.toml")}
	var said, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &complaints
	if err := cmd.Run(); err != nil {
		e.Fatalf("nerdctl %s: %v: %s", strings.Join(args, " "), err, complaints.String())
	}
	return strings.TrimSpace(said.String())
}

// ownNetwork writes nerdctl's default network with the rig's addresses: the defaults may be in use.
func (e *engineer) ownNetwork() {
	e.Helper()
	first := e.rig.Networks()[0]
	at := first.Subnet.Addr().As4()
	at[2] += 16 // the rig's next subnet
	e.net = rig.Net{
		Name: "bridge", Bridge: first.Bridge + "n", DataDir: first.DataDir,
		Subnet: netip.PrefixFrom(netip.AddrFrom4(at), first.Subnet.Bits()),
	}
	text := harness.Must(json.Marshal(rig.Conf{
		"cniVersion": "1.0.0", "name": e.net.Name, "nerdctlLabels": rig.Conf{"nerdctl/default-network": "true"},
		"plugins": []rig.Conf{
			rig.Bridge()(e.net), rig.Portmap()(e.net), {"type": "firewall", "ingressPolicy": "same-bridge"}, {"type": "tuning"},
		},
	}))(e)
	harness.Check(e, os.WriteFile(filepath.Join(e.rig.CNIConfDir(), "nerdctl-bridge.conflist"), text, 0o644))
}

// tidy removes empty directories of the host.
func (e *engineer) tidy() {
	for _, dir := range []string{"/run/containerd/runc/" + nerdctlNamespace, "/run/containerd/runc", "/var/lib/cni/results"} {
		_ = unix.Rmdir(dir)
	}
}

func (e *engineer) create(name string) string {
	e.Helper()
	return nerdctlNamespace + "-" + e.run("run", "--detach", "--pull", "never", "--name", name, "--publish", "127.0.0.1:18098:80", rig.PauseImage)
}

func (e *engineer) container() {
	id := e.create("web")
	e.run("rm", "--force", "web")
	for _, command := range []string{"ADD", "DEL"} {
		call := e.callOf("sandbox.id", id, command)
		e.whole(call, map[string]string{
			"cni.name": e.net.Name, "cniscope.system_calls_seen": "true", "cniscope.partial": "", "k8s.pod.name": "",
		}, "run firewall", "run tuning")
		if netns := call.Attrs["netns.path"]; command == "ADD" && !regexp.MustCompile(`^/proc/\d+/ns/net$`).MatchString(netns) {
			e.Errorf("its namespace is %q", netns)
		}
	}
}

func (e *engineer) runs(name string) bool {
	processes, _ := e.rig.Processes() // none, if they cannot be listed
	return slices.ContainsFunc(processes, func(p rig.Process) bool { return p.Name == name })
}

func (e *engineer) lock() {
	f := harness.Must(os.OpenFile(filepath.Join(e.net.DataDir, e.net.Name, "lock"), os.O_RDWR, 0))(e)
	defer f.Close()
	harness.Check(e, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	ctx, cancel := context.WithTimeout(e.ctx, time.Minute)
	defer cancel()
	go func() {
		defer func() { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN) }()
		poll := time.NewTicker(10 * time.Millisecond)
		defer poll.Stop()
		for ctx.Err() == nil && !e.runs("host-local") {
			<-poll.C
		}
		select {
		case <-time.After(3 * time.Second):
		case <-ctx.Done():
		}
	}()
	id := e.create("waits")
	e.run("rm", "--force", "waits")
	call := e.callOf("sandbox.id", id, "ADD")
	if cause, says := call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"]; cause != "file_lock" || !regexp.MustCompile(`wait(ing|ed) for file lock /.+/bridge/lock, held by `).MatchString(says) {
		e.Errorf("the verdict is %s: %s", cause, says)
	}
}

// doctor keeps nerdctl's network apart from CRI's: its container's remains are no leftovers.
func (e *engineer) doctor() {
	e.create("stays")
	said, _ := e.tool("doctor", "--config", e.scope.Config())
	e.run("rm", "--force", "stays")
	if !strings.Contains(said, "ignored: bridge bridge(host-local)+portmap+firewall+tuning from nerdctl-bridge.conflist") || strings.Contains(said, "✗") {
		e.Errorf("doctor:\n%s", said)
	}
	at := strings.Index(said, "✓")
	for _, sound := range []string{"cni-loaded", "network-ready", "leftovers", "overlap", "failed-calls", "locks"} {
		if at < 0 || !strings.Contains(said[at:], sound) {
			e.Errorf("doctor finds fault with %s:\n%s", sound, said)
		}
	}
}
