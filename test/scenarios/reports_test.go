//go:build linux

package scenarios

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const (
	datastore = "127.0.6.45:2379"
	weaver    = "127.0.0.1:6784"
)

// asksAt asks a server that holds the answer.
func asksAt(address string) func() error { return func() error { return listens(address) } }

func init() {
	doings["ADD weave"], doings["ADD elsewhere"] = asksAt(weaver), asksAt("127.0.0.1:6785")
	doings["DEL datastore"], doings["DEL other"] = asksAt(datastore), asksAt("127.0.6.45:9999")
	doings["ADD cilium"] = func() error {
		c, err := net.Dial("unix", ciliumSocket)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := c.Write([]byte("PUT /v1/endpoint/1 HTTP/1.0\r\n\r\n")); err != nil {
			return err
		}
		_, err = c.Read(make([]byte, 1))
		return err
	}
	doings["ADD panic"] = func() error {
		var missing *incident
		return os.Remove(missing.id)
	}
	doings["ADD exit"] = func() error { os.Exit(2); return nil }
}

// A stand-in of Open vSwitch: its command has its change at once, and then waits until the switch acted on it.
const (
	vsctl, vswitchd, ovsdb = "ovs-vsctl", "ovs-vswitchd", "ovsdb-server"
	ovsSocket              = incidentDir + "/db.sock"
)

// openVSwitch is the main of vsctl, which waits, and of ovsdb, which reports the switch's act after two seconds.
func openVSwitch(name string) error {
	if name == vsctl {
		c, err := net.Dial("unix", ovsSocket)
		if err != nil {
			return err
		}
		defer c.Close()
		_, _ = c.Write([]byte("transact"))
		_, err = io.ReadAll(c)
		return err
	}
	l, err := net.Listen("unix", ovsSocket)
	for err == nil {
		var c net.Conn
		if c, err = l.Accept(); err == nil {
			_, _ = c.Read(make([]byte, 8))
			_, _ = c.Write([]byte("committed"))
			time.AfterFunc(2*time.Second, func() { c.Close() })
		}
	}
	return err
}

// switched is an agent on ciliumSocket that runs vsctl, beside the database and a switch, which may be dead.
func switched(dead bool) func(*scene) func() {
	return func(s *scene) func() {
		start := func(name, program string, args ...string) *exec.Cmd {
			file := incidentDir + "/" + name
			_ = os.Symlink(harness.Must(exec.LookPath(program))(s.T), file)
			c := exec.Command(file, args...)
			harness.Check(s.T, c.Start())
			return c
		}
		self := harness.Must(os.Executable())(s.T)
		_ = os.Symlink(self, incidentDir+"/"+vsctl)
		_ = os.Remove(ovsSocket)
		db, sw := start(ovsdb, self), start(vswitchd, "sleep", "60")
		end := func(c *exec.Cmd) { _ = c.Process.Kill(); _ = c.Wait() }
		if dead {
			end(sw)
		}
		harness.Listens(s, db.Process.Pid, ovsSocket)
		stop := answers(s, func() { _ = exec.Command(incidentDir + "/" + vsctl).Run() }, 200)
		return func() { stop(); end(db); end(sw) }
	}
}

// Each report stands above its twin: the same symptom of another cause.
func moreReports() []incident {
	chain := func(script string) []rig.Plugin { return []rig.Plugin{rig.Bridge(), rig.Test(script)} }
	dns := func(s *scene) func() {
		c, err := net.ListenPacket("udp", silentDNS)
		harness.Check(s.T, err)
		return func() { c.Close() }
	}
	agentRuns := func(command ...string) func(*scene) func() {
		return func(s *scene) func() {
			end := longTable(s)
			stop := answers(s, func() {
				for range 8 {
					_ = exec.Command(command[0], command[1:]...).Run()
				}
			}, 200)
			return func() { stop(); end() }
		}
	}
	const long = 2 * time.Second
	return []incident{{
		id: "hostname-waits-for-dns", chain: chain("istio-script"), before: dns, cause: "slow_command",
		says: []string{"istio-script", "getent", "waited for " + silentDNS}, remedy: "/etc/resolv.conf", never: "strace",
	}, {id: "hostname-twin", chain: chain("slow-script"), before: dns, cause: "slow_command", says: []string{"slow-script"}, never: "resolv.conf"}, {
		id: "ip6tables-fails-each-time", chain: chain("retrier"), cause: "slow_command",
		says: []string{"ip6tables-legacy exited with 3, and plugin retrier ran it again (4 waits of about "}, remedy: "by hand", never: "command sleep",
	}, {id: "ip6tables-twin", chain: chain("waiter"), cause: "slow_command", says: []string{"sleep (4 times)"}, remedy: "command sleep from waiter", never: "by hand"}, {
		id: "agent-runs-slow-iptables", chain: does("cilium-cni", "cilium"),
		before: agentRuns("nsenter", "--net="+rulesNetns, "iptables-legacy", "-w", "-t", "nat", "-A", "CNISCOPE", "-j", "RETURN"),
		cause:  "slow_command", says: []string{"ran iptables-legacy (8 times)", "while plugin cilium-cni waited"}, remedy: "run kube-proxy in mode nftables or ipvs", never: "rate limit",
	}, {
		id: "agent-runs-twin", chain: does("cilium-cni", "cilium"), before: agentRuns("timeout", "0.3", "tail", "-f", "/dev/null"),
		cause: "slow_command", says: []string{"timeout"}, never: "kube-proxy",
	}, {
		id: "vswitchd-dead-behind-vsctl", chain: does("cilium-cni", "cilium"), before: switched(true), cause: "behind_agent",
		says: []string{"plugin cilium-cni waited for ovs-vswitchd (not running), through ovs-vsctl"}, remedy: "start ovs-vswitchd", never: "ovsdb-server",
	}, {
		id: "vswitchd-twin", chain: does("cilium-cni", "cilium"), before: switched(false), cause: "agent_idle",
		says: []string{"waited for ovsdb-server"}, never: "start ovs-vswitchd",
	}, {
		id: "plugin-panics", chain: does("contiv", "panic"), fails: true, cause: "plugin_error",
		says: []string{"plugin contiv panicked: runtime error: invalid memory address"}, remedy: "return to its previous version", never: "conflist",
	}, {id: "panics-twin", chain: does("contiv", "exit"), fails: true, cause: "plugin_error", says: []string{"contiv exited 2"}, never: "previous version"}, {
		id: "ipam-waits-for-quorum", chain: does("weave-net", "weave"), before: server("tcp", weaver, long, ""),
		cause: "agent_idle", says: []string{weaver, "was idle"}, remedy: "status ipam", never: "cilium",
	}, {
		id: "quorum-twin", chain: does("contiv", "elsewhere"), before: server("tcp", "127.0.0.1:6785", long, ""),
		cause: "agent_idle", says: []string{"127.0.0.1:6785"}, remedy: "'s log of that time", never: "weave",
	}}
}

// A DEL waits for its datastore, until it answers or until the request's deadline, at which the runtime kills the plugin.
func TestATeardownThatWaits(t *testing.T) {
	harness.Root(t)
	s := incidentRig(t)
	s.record()
	for i, c := range []struct {
		id, does, address, remedy, never string
		deadline                         bool
	}{
		{"teardown-waits-for-datastore", "datastore", datastore, "etcdctl --endpoints=" + datastore, "memory", false},
		{"plugin-killed-at-deadline", "datastore", datastore, "restart etcd or the proxy", "memory", true},
		{"teardown-twin", "other", "127.0.6.45:9999", "'s log of that time", "etcd", false},
	} {
		t.Run(c.id, func(t *testing.T) {
			s := s.in(t)
			s.network(c.id, does("calico", c.does)...)
			held, until := 3*time.Second, time.Hour
			if c.deadline {
				held, until = time.Hour, 4*time.Second
			}
			defer answersAfter(t, "tcp", c.address, held, "")()
			o := rig.PodOptions{Namespace: "shop", Name: c.id, HostPorts: nil}
			id := harness.Must(s.rig.RunPod(s.ctx, o))(t)
			ctx, cancel := context.WithTimeout(s.ctx, until)
			defer cancel()
			if err := s.rig.StopPod(ctx, id); err != nil != c.deadline {
				t.Fatalf("%d: %v", i, err)
			}
			call := s.deleted(c.id)
			cause, verdict, remedy := call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"]
			if cause != "agent_idle" || !strings.Contains(verdict, "plugin calico waited for") || !strings.Contains(verdict, c.address) ||
				!strings.Contains(remedy, c.remedy) || strings.Contains(remedy, c.never) || strings.Contains(verdict, "killed") != c.deadline {
				t.Errorf("%s: %s\n  → %s", cause, verdict, remedy)
			}
		})
	}
}
