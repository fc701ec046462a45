//go:build linux

package doctor

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// A bootstrap script waits for the network.
func TestWaitingForTheNetwork(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	cmd, out, said := n.waits()
	write(t, filepath.Join(n.rig.CNIConfDir(), "10-other.conflist"), other)
	if code := exitCode(t, cmd.Wait()); code != doctor.ExitHealthy || !strings.Contains(out.String(), "the node's network is ready, after") {
		t.Errorf("ended with %d: %s%s", code, out.String(), said.String())
	}
	if why := `waited \d+s: no CNI configuration has been written into ` + n.rig.CNIConfDir(); !regexp.MustCompile(why).MatchString(said.String()) {
		t.Errorf("%q does not say %s", said.String(), why)
	}
	cmd = n.command("--wait", "ready")
	harness.Equal(t, exitCode(t, cmd.Run()), doctor.ExitHealthy, "ready already: ended with")
	harness.Check(t, os.Remove(filepath.Join(n.rig.CNIBinDir(), "bridge")))
	absent, err := n.command("--wait", "ready", "--timeout", "1s").CombinedOutput()
	harness.Equal(t, exitCode(t, err), doctor.ExitFindings, "without its plugin: ended with", string(absent))
	harness.Says(t, string(absent), "the CNI plugin bridge cannot be run")
}

// The runtime takes a network whose agent is gone for ready: a configuration was left behind.
func TestANetworkWithoutItsAgentIsNotReady(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	socket := filepath.Join(t.TempDir(), "agent.sock")
	write(t, filepath.Join(n.rig.CNIConfDir(), "10-left.conflist"), fmt.Sprintf(`{"cniVersion":"1.0.0","name":"left","plugins":[{"type":"bridge","agent":%q}]}`, socket))
	cmd, out, said := n.waits()
	listens(t, socket)
	if code := exitCode(t, cmd.Wait()); code != doctor.ExitHealthy || !strings.Contains(out.String(), "the node's network is ready, after") {
		t.Errorf("ended with %d: %s%s", code, out.String(), said.String())
	}
	harness.Says(t, said.String(), "asks its agent at "+socket+": there is no such socket")
}

// listens takes connections at a unix socket until the test ends.
func listens(t *testing.T, socket string) {
	l := harness.Must(net.Listen("unix", socket))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			c.Close()
		}
	}()
}

func TestANetworkThatDoesNotCome(t *testing.T) {
	n := newNode(t, rig.Options{Networks: []rig.Network{}})
	out, err := n.command("--wait", "ready", "--timeout", "1500ms").CombinedOutput()
	harness.Says(t, string(out), "✗ network-ready")
	if !regexp.MustCompile(`is not ready after [\d.]+s: no CNI configuration has been written`).Match(out) {
		t.Errorf("%s", out)
	}
	harness.Equal(t, exitCode(t, err), doctor.ExitFindings, "ended with")
	cmd, unready, said := n.waits()
	harness.Check(t, cmd.Process.Signal(syscall.SIGINT))
	harness.Equal(t, exitCode(t, cmd.Wait()), doctor.ExitFindings, "interrupted, it ended with")
	interrupted := `^waited 0s: [^\n]*\ncniscope: interrupted after [\d.]+m?s: the node's network is not ready\n$`
	if !regexp.MustCompile(interrupted).MatchString(said.String() + unready.String()) {
		t.Errorf("interrupted: %s%s", said, unready)
	}
	n.rig.Kill9Containerd()
	out, _ = n.command("--wait", "ready", "--timeout", "1s").CombinedOutput()
	if !regexp.MustCompile(`waited \d+s: containerd does not answer`).Match(out) {
		t.Errorf("without containerd: %s", out)
	}
}

func TestWhoMayNotAskDoesNotWait(t *testing.T) {
	n := newNode(t, rig.Options{})
	cmd := n.command("--wait", "ready", "--timeout", "10m")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if code := exitCode(t, err); code != doctor.ExitUnchecked || !strings.Contains(string(out), "permission denied") {
		t.Errorf("ended with %d: %s", code, out)
	}
}

// waits starts doctor, which waits for the network and has said why.
func (n *node) waits() (cmd *exec.Cmd, out, said *harness.Log) {
	n.Helper()
	cmd, out, said = n.command("--wait", "ready", "--timeout", "60s"), &harness.Log{}, &harness.Log{}
	cmd.Stdout, cmd.Stderr = out, said
	harness.Check(n.T, cmd.Start())
	harness.Until(n, "it says why", func() bool { return said.String() != "" })
	return cmd, out, said
}
