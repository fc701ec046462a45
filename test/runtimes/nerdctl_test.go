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

// engineer is nerdctl, by its own folders in those of a rig.
type engineer struct {
	*node
	program string
	net     rig.Net // its default network
}

// nerdctlNamespace is where its containers are: not where CRI has its own.
const nerdctlNamespace = "cniscope"

// nerdctl has runc run its networks' plugins, as an OCI hook: neither the runtime nor NRI has a
// part in it.
func TestNerdctl(t *testing.T) {
	tools, err := rig.Tools("nerdctl")
	harness.Check(t, err)
	n := start(t, rig.Options{HostMounts: true}, "[slow]\ncall = \"300ms\"\ncommand = \"1m\"\n")
	e := &engineer{node: n, program: filepath.Join(tools, "nerdctl")}
	t.Cleanup(e.tidy)
	e.ownNetwork()
	e.run("load", "--input", filepath.Join(n.rig.Dir(), "pause.tar"))
	t.Run("a container comes and goes", func(t *testing.T) { e.in(t).container() })
	t.Run("a held lock", func(t *testing.T) { e.in(t).lock() })
	t.Run("doctor", func(t *testing.T) { e.in(t).doctor() })
}

// in is the same nerdctl in a test below.
func (e engineer) in(t *testing.T) *engineer {
	e.node = e.node.in(t)
	return &e
}

// run runs nerdctl to its end, and returns what it wrote to standard output.
func (e *engineer) run(args ...string) string {
	e.Helper()
	r := e.rig
	cmd := exec.CommandContext(e.ctx, e.program, append([]string{
		"--address", r.Socket(), "--namespace", nerdctlNamespace, "--cgroup-manager", "cgroupfs",
		"--cni-path", r.CNIBinDir(), "--cni-netconfpath", r.CNIConfDir(), "--data-root", filepath.Join(r.Dir(), "nerdctl"),
	}, args...)...)
	// What a hook runs inherits it.
	cmd.Env = []string{r.Env(), "PATH=" + os.Getenv("PATH"), "HOME=" + r.Dir(), "NERDCTL_TOML=" + filepath.Join(r.Dir(), "nerdctl.toml")}
	var said, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &complaints
	if err := cmd.Run(); err != nil {
		e.Fatalf("nerdctl %s: %v: %s", strings.Join(args, " "), err, complaints.String())
	}
	return strings.TrimSpace(said.String())
}

// ownNetwork writes nerdctl's default network as nerdctl does for the first container, but with
// addresses, a bridge and files of the rig's: those that it would take may be taken.
func (e *engineer) ownNetwork() {
	e.Helper()
	first := e.rig.Networks()[0]
	at := first.Subnet.Addr().As4()
	at[2] += 16 // the next one that a rig has
	e.net = rig.Net{
		Name: "bridge", Bridge: first.Bridge + "n", DataDir: first.DataDir,
		Subnet: netip.PrefixFrom(netip.AddrFrom4(at), first.Subnet.Bits()),
	}
	text, err := json.Marshal(rig.Conf{
		"cniVersion": "1.0.0", "name": e.net.Name, "nerdctlLabels": rig.Conf{"nerdctl/default-network": "true"},
		"plugins": []rig.Conf{
			rig.Bridge()(e.net), rig.Portmap()(e.net), {"type": "firewall", "ingressPolicy": "same-bridge"}, {"type": "tuning"},
		},
	})
	harness.Check(e, err)
	harness.Check(e, os.WriteFile(filepath.Join(e.rig.CNIConfDir(), "nerdctl-bridge.conflist"), text, 0o644))
}

// tidy removes what is left in folders of the host's, if nobody else uses them.
func (e *engineer) tidy() {
	for _, dir := range []string{"/run/containerd/runc/" + nerdctlNamespace, "/run/containerd/runc", "/var/lib/cni/results"} {
		_ = unix.Rmdir(dir)
	}
}

// create starts a container, and returns its id as plugins are told it.
func (e *engineer) create(name string) string {
	e.Helper()
	return nerdctlNamespace + "-" + e.run("run", "--detach", "--pull", "never", "--name", name, "--publish", "127.0.0.1:18098:80", rig.PauseImage)
}

// container asserts what is known of the calls of a container that comes and goes.
func (e *engineer) container() {
	id := e.create("web")
	e.run("rm", "--force", "web")
	for _, command := range []string{"ADD", "DEL"} {
		call, below := e.callOf("sandbox.id", id, command)
		for key, want := range map[string]string{
			"cni.name": e.net.Name, "cniscope.system_calls_seen": "true", "cniscope.partial": "",
			"k8s.pod.name": "",
		} {
			if is := value(call, key); is != want {
				e.Errorf("%s: %s is %q, want %q", command, key, is, want)
			}
		}
		if netns := value(call, "netns.path"); command == "ADD" && !regexp.MustCompile(`^/proc/\d+/ns/net$`).MatchString(netns) {
			e.Errorf("its namespace is %q", netns)
		}
		for kind, wants := range map[string][]string{
			"run":      {"bridge " + command, "portmap " + command, "firewall " + command, "tuning " + command},
			"delegate": {"host-local " + command}, "command": {"iptables"},
		} {
			for _, want := range wants {
				if names := namesOf(below, kind); !slices.Contains(names, want) {
					e.Errorf("%s: no %s among the spans of kind %s: %v", command, want, kind, names)
				}
			}
		}
	}
}

// runs tells whether a process of the rig has that name.
func (e *engineer) runs(name string) bool {
	processes, _ := e.rig.Processes() // none, if they cannot be listed
	return slices.ContainsFunc(processes, func(p rig.Process) bool { return p.Name == name })
}

// lock asserts that a container that waits for host-local's lock has a verdict that says so.
func (e *engineer) lock() {
	f, err := os.OpenFile(filepath.Join(e.net.DataDir, e.net.Name, "lock"), os.O_RDWR, 0)
	harness.Check(e, err)
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
	call, _ := e.callOf("sandbox.id", id, "ADD")
	if cause, says := value(call, "cniscope.cause"), value(call, "cniscope.verdict"); cause != "file_lock" || !regexp.MustCompile(`waiting for lock /.+/bridge/lock, held by `).MatchString(says) {
		e.Errorf("the verdict is %s: %s", cause, says)
	}
}

// doctor asserts that nerdctl's network is told from that of CRI, and that what a container of
// nerdctl's has (an address, rules) is not taken for leftovers.
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
