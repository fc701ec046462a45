//go:build linux

package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/standin"
)

const (
	incidentDir = "/run/cniscope-scenario/incidents"
	silentDNS   = "127.0.6.53:53"
	ovnSocket   = incidentDir + "/ovn-cni-server.sock"
	deafAddress = "127.0.6.44:443"
	rulesNetns  = incidentDir + "/netns"
)

// reporters are names under which this program is a chained plugin that does what its configuration's key "does" names.
func reporters() []string {
	return []string{"calico", "multus", "cilium-cni", "flannel", "ovn-k8s-cni-overlay", "antrea-cni", "contiv", "weave-net", "linkerd-cni"}
}

// reports is the main of a reporter.
func reports() int {
	text, err := io.ReadAll(os.Stdin)
	var conf struct {
		Does       string
		PrevResult json.RawMessage
	}
	if err == nil {
		err = json.Unmarshal(text, &conf)
	}
	command := os.Getenv("CNI_COMMAND")
	if does := doings[command+" "+conf.Does]; err == nil && does != nil {
		err = does()
	}
	if err != nil {
		fmt.Printf(`{"cniVersion":"1.0.0","code":999,"msg":%q}`, err.Error())
		return 1
	}
	if command == "ADD" {
		fmt.Println(string(conf.PrevResult))
	}
	return 0
}

// doings are what a real plugin did, with its words, by the command and the key "does".
var doings = map[string]func() error{
	"ADD service": func() error {
		if _, err := net.DialTimeout("tcp", deafAddress, 3*time.Second); err != nil {
			return fmt.Errorf("Get https://%s/api/v1/namespaces/shop: %w", deafAddress, err)
		}
		return nil
	},
	"ADD far": func() error {
		c, err := net.Dial("tcp", apiServer)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return fmt.Errorf(`Multus: [shop/pod]: error waiting for pod: Get "https://%s/api/v1/namespaces/shop/pods/pod?timeout=1m0s": context deadline exceeded`, apiServer)
		}
		return nil
	},
	"ADD lost": func() error {
		answer, err := put(2 * time.Second)
		if err != nil {
			return fmt.Errorf("unable to create endpoint: Cilium API client timeout exceeded")
		}
		return answer.Body.Close()
	},
	"ADD dad": func() error { return os.WriteFile("/proc/sys/net/ipv6/conf/absent0/accept_dad", []byte("0"), 0) },
	"ADD netns": func() error {
		c, err := net.Dial("unix", ovnSocket)
		if err != nil {
			return err
		}
		defer c.Close()
		answer, err := io.ReadAll(c)
		if err != nil {
			return err
		}
		return fmt.Errorf("CNI request failed with status 400: '%s'", answer)
	},
	"ADD pids": func() error {
		if err := os.WriteFile(incidentDir+"/cgroup/cgroup.procs", fmt.Appendf(nil, "%d", os.Getpid()), 0); err != nil {
			return err
		}
		if err := exec.Command("/bin/true").Run(); err != nil {
			return fmt.Errorf("error adding entry 172.34.65.0/24 to ipset ANTREA-POD-IP: %w", err)
		}
		return nil
	},
	"ADD clock": func() error {
		return fmt.Errorf(`error getting ClusterInformation: Get "https://10.152.183.1:443/apis/crd.projectcalico.org/v1/clusterinformations/default": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2023-06-16T22:41:21+12:00 is before 2023-06-16T11:39:43Z`)
	},
	"ADD table": func() error {
		return harness.Within(rulesNetns, func() error {
			for range 8 {
				if err := exec.Command("iptables-legacy", "-w", "-t", "nat", "-A", "CNISCOPE", "-j", "RETURN").Run(); err != nil {
					return err
				}
			}
			return nil
		})
	},
	"ADD lock": func() error {
		f, err := os.OpenFile(incidentDir+"/contiv.lock", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil || os.Remove(incidentDir+"/first") != nil {
			return err
		}
		_, err = os.ReadFile(incidentDir + "/park")
		return err
	},
}

// listens asks an address and waits until the answer or its end.
func listens(address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprint(c, "GET /\n"); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// answersAfter is a server that holds each connection for a time after its request, then ends it.
func answersAfter(t *testing.T, network, address string, long time.Duration, says string) func() {
	return serves(t, network, address, func(c net.Conn) {
		time.Sleep(long)
		_, _ = io.WriteString(c, says)
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond)) // unread bytes would reset it
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	})
}

// serves serves each connection.
func serves(t *testing.T, network, address string, serve func(net.Conn)) func() {
	if network == "unix" {
		_ = os.Remove(address)
	}
	l := harness.Must(net.Listen(network, address))(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c)
		}
	}()
	return func() { l.Close() }
}

// deaf is an address whose listener accepts no connection any more, so that its packets are dropped.
func deaf(s *scene) func() {
	t := s.T
	fd := harness.Must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
	harness.Check(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 6, 44}, Port: 443}))
	harness.Check(t, unix.Listen(fd, 0))
	var held []net.Conn
	for range 2 {
		if c, err := net.DialTimeout("tcp", deafAddress, 200*time.Millisecond); err == nil {
			held = append(held, c)
		}
	}
	return func() {
		for _, c := range held {
			c.Close()
		}
		_ = unix.Close(fd)
	}
}

// incident is a case of test/incidents/incidents.toml that is right.
type incident struct {
	id     string
	chain  []rig.Plugin
	before func(*scene) func()
	fails  bool
	cause  string
	says   []string // parts of the verdict
	remedy string   // part of the remedy
	never  string   // not in the remedy
}

func does(plugin, what string) []rig.Plugin {
	return []rig.Plugin{rig.Bridge(rig.Conf{"ipMasq": false}), rig.Use(rig.Conf{"type": plugin, "does": what})}
}

// server holds each connection for a time.
func server(network, address string, long time.Duration, says string) func(*scene) func() {
	return func(s *scene) func() { return answersAfter(s.T, network, address, long, says) }
}

func onDisk(n rig.Net) rig.Conf {
	_ = os.MkdirAll(incidentDir+"/disk/"+n.Name, 0o755)
	return rig.Bridge(rig.Conf{"ipam": rig.HostLocal(incidentDir+"/disk", n.Subnet)})(n)
}

func slowIncidents(n *standin.Node) []incident {
	return []incident{{
		id: "iptables-list-resolves-names", chain: []rig.Plugin{rig.Bridge(), rig.Test("azure-lister")},
		before: func(s *scene) func() {
			c, err := net.ListenPacket("udp", silentDNS)
			harness.Check(s.T, err)
			return func() { c.Close() }
		},
		cause: "slow_command", says: []string{"azure-lister", "iptables"}, remedy: "add -n to iptables -t nat -L CNISCOPE-NAMES",
	}, {
		id: "service-address-unanswered", chain: does("calico", "service"), fails: true, before: deaf,
		cause: "plugin_error", says: []string{"i/o timeout", "plugin calico waited for " + deafAddress}, remedy: "kube-proxy",
	}, {
		id: "api-server-far-away", chain: does("multus", "far"), fails: true, before: server("tcp", apiServer, 700*time.Millisecond, "x"),
		cause: "plugin_error", says: []string{"context deadline exceeded", "plugin multus waited for " + apiServer}, remedy: "readyz",
	}, {
		id: "portmap-thousands-of-rules", chain: does("contiv", "table"), before: longTable,
		cause: "slow_command", says: []string{"plugin contiv ran iptables-legacy (8 times)"}, remedy: "run kube-proxy in mode nftables or ipvs",
	}, {
		id: "agent-lost-its-api-server", chain: does("cilium-cni", "lost"), fails: true, before: func(s *scene) func() {
			end := answersAfter(s.T, "tcp", apiServer, 4*time.Second, "")
			stop := answers(s, func() { _ = listens(apiServer) }, http.StatusOK)
			return func() { stop(); end() }
		},
		cause: "plugin_error", says: []string{"API client timeout exceeded", "plugin cilium-cni waited for "}, remedy: "delete its pod",
	}, {
		id: "ovs-database-overloaded", chain: []rig.Plugin{asks(n, behind{inject: standin.Injection{Point: "db.insert", Kind: "compute", For: lost}})},
		cause: "behind_agent", says: []string{"waited for vs-db (", "CPU", "through vs-agent"}, remedy: "perf record",
	}, {
		id: "disk-saturated", chain: []rig.Plugin{onDisk},
		before: func(s *scene) func() {
			thaw, err := standin.Freeze(incidentDir + "/disk")
			harness.Check(s.T, err)
			time.AfterFunc(lost, func() { harness.Check(s.T, thaw()) })
			return func() {}
		},
		cause: "system_call", says: []string{"host-local waited in system call ", "the file system of " + incidentDir + "/disk"}, remedy: "faster disk",
	}, {
		id: "disk-twin", chain: []rig.Plugin{onDisk}, before: func(s *scene) func() {
			f, err := os.Create(incidentDir + "/disk/disk-twin/lock")
			harness.Check(s.T, err)
			harness.Check(s.T, unix.Flock(int(f.Fd()), unix.LOCK_EX))
			time.AfterFunc(lost, func() { f.Close() })
			return func() {}
		},
		cause: "file_lock", says: []string{"host-local waited for file lock "},
	}, {
		id: "plugin-deadlocked-on-its-lock", chain: does("contiv", "lock"), before: deadlocked,
		cause: "file_lock", says: []string{"/contiv.lock, held by contiv (pid "}, remedy: "kill contiv (pid ",
	}}
}

func failedIncidents() []incident {
	onTmpfs := func(n rig.Net) rig.Conf {
		return rig.Bridge(rig.Conf{"ipam": rig.HostLocal(incidentDir+"/full", n.Subnet)})(n)
	}
	list := rig.Use(rig.Conf{"type": "tuning", "sysctl": []rig.Conf{{"key": "net.ipv4.tcp_keepalive_intvl", "value": "15"}}})
	all := []incident{{
		id: "ipv6-disabled-accept-dad", chain: does("flannel", "dad"), says: []string{"accept_dad"}, remedy: "0.7.0 or later",
	}, {
		id: "sysctl-is-a-list", chain: []rig.Plugin{rig.Bridge(), list},
		says: []string{"plugin tuning failed (code ", "cannot unmarshal array"}, remedy: "set the option sysctl",
	}, {
		id: "ingress-qdisc-is-there", chain: []rig.Plugin{rig.Bridge(), rig.Test("bandwidth")},
		says: []string{"create ingress qdisc: file exists"}, remedy: "clsact",
	}, {
		id: "address-in-use-on-master", chain: []rig.Plugin{rig.Bridge(), rig.Test("ipvlan")},
		says: []string{"10.2.27.108", "address already in use"}, remedy: "delete the pod that still holds this address",
	}, {
		id: "netns-not-mounted-in-agent", chain: does("ovn-k8s-cni-overlay", "netns"),
		before: server("unix", ovnSocket, time.Millisecond, `[shop/web 4c0d] failed to configure pod interface: failed to open netns "/var/run/netns/76716600-f7fd-462f-b7df-ae054dbd144e": unknown FS magic on "/var/run/netns/76716600-f7fd-462f-b7df-ae054dbd144e": 1021994`),
		says:   []string{"unknown FS magic"}, remedy: "mountPropagation HostToContainer",
	}, {
		id: "no-more-processes", chain: does("antrea-cni", "pids"), before: fewProcesses,
		says: []string{"resource temporarily unavailable"}, remedy: "kernel.pid_max",
	}, {
		id: "clock-behind", chain: does("calico", "clock"), says: []string{"is before 2023-06-16T11:39:43Z"}, remedy: "set the node's clock",
	}, {
		id: "words-in-place-of-json", chain: []rig.Plugin{rig.Bridge(), rig.Test("wordy")},
		says: []string{"plugin wordy failed: ", "to retry"},
	}, {
		id: "lock-file-is-a-directory", chain: []rig.Plugin{rig.Bridge(), rig.Test("dirlock")},
		says: []string{"Is a directory", "iptables-legacy, exited 4"}, remedy: "rmdir",
	}, {
		id: "tmpfs-full", chain: []rig.Plugin{onTmpfs}, before: func(*scene) func() {
			_ = os.WriteFile(incidentDir+"/full/log", make([]byte, 1<<17), 0o600) // as much as there is room for
			return func() {}
		},
		says: []string{"/full/", "no space left on device"}, remedy: "file system of the file that the message names",
	}}
	for i := range all {
		all[i].fails, all[i].cause = true, "plugin_error"
	}
	return all
}

// incidentRig has the reporters and three scripts.
func incidentRig(t *testing.T) *scene {
	for _, dir := range []string{"/full", "/disk"} { // left by a killed test
		_ = unix.Unmount(incidentDir+dir, unix.MNT_DETACH)
	}
	harness.Check(t, os.RemoveAll(incidentDir))
	harness.Check(t, os.MkdirAll(incidentDir+"/full", 0o755))
	t.Cleanup(func() { harness.Check(t, os.RemoveAll(incidentDir)) })
	standin.MountDisk(t, incidentDir)
	harness.Check(t, unix.Mount("tmpfs", incidentDir+"/full", "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { harness.Check(t, unix.Unmount(incidentDir+"/full", unix.MNT_DETACH)) })
	harness.Check(t, os.WriteFile(incidentDir+"/resolv.conf", []byte("nameserver 127.0.6.53\noptions timeout:2 attempts:1\n"), 0o644))
	onAdd := func(body string) []byte { return rig.Script(`if [ "$CNI_COMMAND" = ADD ]; then ` + body + "; fi") }
	plugins := map[string][]byte{
		"azure-lister": onAdd(`unshare -m sh -c 'mount --bind ` + incidentDir + `/resolv.conf /etc/resolv.conf; c=CNISCOPE-NAMES
			t="iptables -t nat"; $t -N $c; $t -A $c -s 10.1.2.3; $t -L $c >/dev/null; $t -F $c; $t -X $c'`),
		"istio-script": onAdd("unshare -m sh -c 'mount --bind " + incidentDir + "/resolv.conf /etc/resolv.conf; getent ahosts absent.example.test >/dev/null; :'"),
		"mute":         onAdd("exit 0"),
		"retrier":      onAdd("for i in 1 2 3 4; do ip6tables-legacy -t absent -F INPUT; sleep 0.7; done"),
		"waiter":       onAdd("for i in 1 2 3 4; do ip6tables-legacy --version >&2; sleep 0.7; done"),
		"wordy":        onAdd(`echo "ts=1708028912.027259, to retry"; exit 1`),
		"twice":        onAdd(`ip=${conf#*'"address":"'}; ip=${ip%%\"*}; out=$(nsenter --net=$CNI_NETNS ip addr add $ip dev eth0 2>&1) || fail 999 "failed to add IP addr to \\\"eth0\\\": file exists"`),
		"dirlock":      onAdd(`out=$(XTABLES_LOCKFILE=/run iptables-legacy -w 5 -t filter -S 2>&1) || fail 999 "running [iptables -w 5 -t filter -S]: exit status $?: $out"`),
		"slow-script":  onAdd("timeout 2 tail -f /dev/null; :"),
		"bandwidth":    onAdd(`fail 999 'create ingress qdisc: file exists'`),
		"ipvlan":       onAdd(`fail 999 'failed to add IP addr {Interface:0xc000208400 Address:{IP:10.2.27.108 Mask:ffffff00} Gateway:10.2.27.1} to \"net1\": address already in use'`),
	}
	self := harness.Must(os.Executable())(t)
	binary := harness.Must(os.ReadFile(self))(t)
	for _, name := range reporters() {
		plugins[name] = binary
	}
	return set(t, rig.Options{Nice: priority, Plugins: plugins}, slowly)
}

// The verdict of an incident names the cause and what helps.
func TestIncidents(t *testing.T) {
	harness.Root(t)
	s := incidentRig(t)
	s.record()
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}})
	for _, c := range slices.Concat(slowIncidents(n), failedIncidents(), moreReports(), unseen(), furtherReports(), lateReports()) {
		t.Run(c.id, func(t *testing.T) { s.in(t).suffersFrom(c) })
	}
}

func (s *scene) suffersFrom(c incident) *call {
	s.Helper()
	s.prefix = c.id
	s.network(c.id, c.chain...)
	if c.before != nil {
		defer c.before(s)()
	}
	call := s.add(rig.PodOptions{}, c.fails)
	c.judged(call, s)
	return call
}

func (c *incident) judged(call *call, s *scene) {
	s.Helper()
	cause, verdict, remedy := call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"]
	lacks := func(part string) bool { return !strings.Contains(verdict, part) }
	if cause != c.cause || slices.ContainsFunc(c.says, lacks) || !strings.Contains(remedy, c.remedy) ||
		c.never != "" && strings.Contains(remedy, c.never) {
		s.Errorf("%s: %s\n  → %s", cause, verdict, remedy)
	}
}
