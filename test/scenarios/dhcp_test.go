//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

func (s *scene) leases(n rig.Net) *exec.Cmd {
	s.Helper()
	server, err := exec.LookPath("dnsmasq")
	if err != nil {
		s.Skip("needs dnsmasq: make debian-test")
	}
	gateway := n.Subnet.Addr().Next()
	for _, args := range [][]string{
		{"link", "add", n.Bridge, "type", "bridge"},
		{"addr", "add", fmt.Sprintf("%s/%d", gateway, n.Subnet.Bits()), "dev", n.Bridge},
		{"link", "set", n.Bridge, "up"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			s.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
		}
	}
	first := gateway
	for range 20 {
		first = first.Next()
	}
	last := first
	for range 50 {
		last = last.Next()
	}
	cmd := exec.Command(server, "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root", "--pid-file=",
		"--interface="+n.Bridge, "--bind-interfaces", "--dhcp-authoritative", "--no-ping", "--dhcp-reply-delay=1",
		"--dhcp-leasefile="+filepath.Join(s.TempDir(), "leases"), fmt.Sprintf("--dhcp-range=%s,%s,1h", first, last))
	s.daemon(cmd)
	return cmd
}

func (s *scene) daemon(cmd *exec.Cmd) {
	s.Helper()
	cmd.Env = append(os.Environ(), s.rig.Env())
	harness.Beside(s, cmd)
}

// The daemon of the dhcp plugin, with a slow DHCP server, with none, and without the daemon.
func TestTheDaemonOfTheDHCPPlugin(t *testing.T) {
	s := set(t, rig.Options{}, "")
	const socket = "/run/cniscope-scenario/dhcp.sock" // appears in the verdict
	harness.Check(t, os.MkdirAll(filepath.Dir(socket), 0o755))
	t.Cleanup(func() { _ = os.Remove(socket) })
	n := s.network("leased", rig.Bridge(rig.Conf{
		"isGateway": false, "ipMasq": false, "ipam": rig.Conf{"type": "dhcp", "daemonSocketPath": socket},
	}))
	server := s.leases(n)
	tools := harness.Must(rig.Tools("cni/dhcp"))(t)
	daemon := exec.Command(filepath.Join(tools, "cni", "dhcp"), "daemon", "-socketpath", socket,
		"-timeout", "3s", "-resendmax", "1s", "-resendtimeout", "5s")
	s.daemon(daemon)
	harness.Listens(s, daemon.Process.Pid, socket)

	call := s.add(rig.PodOptions{}, false)
	call.accounted(t)
	t.Logf("%.0f ms, mostly %s", call.Took(), call.Attrs["cniscope.biggest_part"])
	if part := call.Attrs["cniscope.biggest_part"]; !strings.HasPrefix(part, "plugin dhcp waited for dhcp at "+socket) {
		t.Errorf("it is said to be lost to %s", part)
	}
	harness.Equal(t, call.Attrs["cniscope.slow_agents"], "1", "slow agents")
	asked := call.Below("agent")
	if len(asked) != 1 {
		t.Fatalf("%d calls of an agent", len(asked))
	}
	a := asked[0]
	for key, want := range map[string]string{
		"cniscope.agent": "dhcp", "cniscope.agent_pid": strconv.Itoa(daemon.Process.Pid), "cniscope.agent_listens": "",
		"network.peer.address": socket, "cniscope.slow": "true", "cni.plugin": "dhcp", "sandbox.id": call.Attrs["sandbox.id"],
	} {
		harness.Equal(t, a.Attrs[key], want, key)
	}
	// It queries the interface in the pod's namespace.
	if a.Ms("cniscope.queries") == 0 {
		t.Error("nothing is said of what the daemon asked of the kernel")
	}
	if a.Took() < float64(time.Second.Milliseconds()) {
		t.Errorf("it took %.0f ms, and the server waits for a second", a.Took())
	}
	if runs := call.Below("run", "delegate"); len(runs) != 2 {
		t.Errorf("%d runs: bridge and dhcp are meant", len(runs))
	}
	for _, x := range call.Below("command") {
		t.Errorf("a command that nobody ran: %s", x.Name)
	}
	for _, gone := range []struct {
		process                     *exec.Cmd
		cause, says, report, remedy string
	}{
		{server, "plugin_error", `plugin dhcp failed (code 999): "error calling DHCP.Allocate: no more tries"`, "containernetworking/cni#329", "start a DHCP server or relay in the master's VLAN"},
		{daemon, "agent_refused", `plugin dhcp failed (code 999): "error dialing DHCP daemon: dial unix ` + socket, "k8snetworkplumbingwg/multus-cni#1031", "start the DHCP daemon on this node"},
	} {
		harness.Check(t, gone.process.Process.Kill())
		_ = gone.process.Wait()
		call := s.add(rig.PodOptions{}, true)
		harness.Says(t, call.Attrs["cniscope.verdict"], gone.says)
		harness.Equal(t, call.Attrs["cniscope.report"], gone.report, "the report")
		harness.Equal(t, call.Attrs["cniscope.cause"], gone.cause, "the cause")
		if remedy := call.Attrs["cniscope.remedy"]; !strings.HasPrefix(remedy, gone.remedy) {
			t.Errorf("the remedy is %q, want %q", remedy, gone.remedy)
		}
	}
}
