//go:build linux

package scenarios

import (
	"context"
	"fmt"
	"os"
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

type judged struct {
	name    string
	control []rig.Plugin // chain without the cause
	chain   []rig.Plugin // chain with the cause; default: control
	// before runs before the pod; its result ends it.
	before func(*scene, rig.Net) func()
	fails  bool
	cause  string
	says   string
	report string
	remedy string // optional
	hung   bool   // it is also reported as hung
	// span is the kind, an attribute, and the value (a regular expression) of a span below the
	// call.
	span [3]string
}

// slowly makes 300 ms slow.
const slowly = "[slow]\ncall = \"300ms\"\ncommand = \"1m\"\nhung = \"2s\"\n"

// priority lets a plugin's time go to the cause and not to other CPU users.
const priority = -20

// holds locks a path until two seconds after a process waits for it.
func holds(path func(rig.Net) string) func(*scene, rig.Net) func() {
	return func(s *scene, n rig.Net) func() { return holdFor(s, path(n), waitedFor(s.T, path(n))) }
}

// holdFor locks a path until two seconds after an event.
func holdFor(s *scene, path string, happened func() bool) (end func()) {
	free := hold(s.T, path)
	stop := whenever(happened, func() { time.AfterFunc(2*time.Second, free) })
	return func() { stop(); free() }
}

// whenever calls do once happened is true, unless ended before.
func whenever(happened func() bool, do func()) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for ctx.Err() == nil {
			if happened() {
				do()
				return
			}
			<-look.C
		}
	}()
	return func() { cancel(); <-over }
}

// waitedFor reports whether a process waits for a lock on a file (/proc/locks, proc_locks(5)).
func waitedFor(t *testing.T, path string) func() bool {
	return func() bool {
		var file unix.Stat_t
		if err := unix.Stat(path, &file); err != nil {
			return false
		}
		locks, err := os.ReadFile("/proc/locks")
		if err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(string(locks)) {
			if strings.Contains(line, " -> ") && strings.Contains(line, fmt.Sprintf(":%d ", file.Ino)) {
				return true
			}
		}
		return false
	}
}

func xtablesLock(rig.Net) string { return "/run/xtables.lock" }

func legacyTables(t *testing.T) (dir string) {
	dir = t.TempDir()
	for _, name := range []string{"iptables", "ip6tables"} {
		harness.Check(t, os.Symlink("/usr/sbin/"+name+"-legacy", filepath.Join(dir, name)))
	}
	return dir
}

// Reported problems are reproduced, and cniscope names their cause, but not for the control.
func TestReportsAreJudged(t *testing.T) {
	path := legacyTables(t)
	for name, body := range map[string]string{"powershell": "sleep 0.6", "Get-NetAdapter": "sleep 0.6"} {
		harness.Check(t, os.WriteFile(filepath.Join(path, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
	}
	harness.Check(t, os.Symlink("/bin/sleep", filepath.Join(path, "watcher")))
	// iptables up to 1.8.7 does not wait for its lock by default.
	old := t.TempDir()
	gaveUp := filepath.Join(old, "gave-up") // one line per failure
	harness.Check(t, os.WriteFile(filepath.Join(old, "iptables"), []byte("#!/bin/sh\nexec 9>/run/xtables.lock; flock -n 9 || { echo >>"+gaveUp+"; exit 4; }\n"), 0o755))
	const refused = "iptables-nft --wait -t filter -A OUTPUT -p tcp -j MASQUERADE" // only in nat
	onAdd := func(body string) []byte { return rig.Script(`if [ "$CNI_COMMAND" = ADD ]; then ` + body + "; fi") }
	s := set(t, rig.Options{
		Env:  []string{"PATH=" + path + ":" + os.Getenv("PATH")},
		Nice: priority,
		Plugins: map[string][]byte{
			"nodeport": onAdd(`i=0; while [ $i -lt 300 ]; do iptables -w -t nat -S >/dev/null; i=$((i+1)); done`),
			"retrier":  onAdd(`until ` + old + `/iptables -t nat -S; do sleep 1; done`),
			"refused":  onAdd(`for _ in 1 2 3; do ` + refused + ` || sleep 0.5; done; iptables-nft --wait -t nat -S >/dev/null`),
			"gave-up":  onAdd(`for _ in 1 2; do ` + refused + ` || sleep 0.3; done; fail 999 "could not apply the rules"`),
			"locked":   onAdd(`for _ in 1 2; do ` + old + `/iptables || sleep 0.3; done; fail 999 "could not apply the rules"`),
			"adapters": onAdd(`powershell Get-NetAdapter; powershell Get-NetIPAddress`),
			"adapter":  onAdd(`Get-NetAdapter`),
			"leaver":   onAdd(`watcher 2 & :`),
			"daemon":   onAdd(`watcher 2 </dev/null >/dev/null 2>&1 & :`),
			"hogger":   onAdd(`echo >` + hogDir + `/asks; read held <` + hogDir + `/held; ip link add cniscope-hog type bridge; ip link del cniscope-hog`),
		},
	}, slowly)
	s.record()
	unmasked := rig.Bridge(rig.Conf{"ipMasq": false}) // runs no iptables
	idle := []rig.Plugin{rig.Bridge(), rig.Test("idler")}
	with := func(name string) []rig.Plugin { return []rig.Plugin{rig.Bridge(), rig.Test(name), rig.Test("idler")} }
	for _, c := range []judged{{
		name: "dozens of iptables", control: idle, chain: with("nodeport"),
		cause: "many_commands", says: `plugin nodeport ran iptables 300 times`, report: "containernetworking/plugins#510",
	}, {
		name: "xtables lock", control: []rig.Plugin{rig.Bridge()}, before: holds(xtablesLock),
		cause: "file_lock", says: `of \S+: ip6?tables\S* waited for file lock /run/xtables\.lock.*held by scenarios\.test`, report: "aws/amazon-vpc-cni-k8s#2948",
		span: [3]string{"lock", "cniscope.lock.path", `^/run/xtables\.lock$`},
	}, {
		name: "iptables again every second", control: idle, chain: []rig.Plugin{unmasked, rig.Test("retrier")},
		before: func(s *scene, _ rig.Net) func() {
			return holdFor(s, xtablesLock(rig.Net{}), func() bool { lines, _ := os.ReadFile(gaveUp); return len(lines) > 0 })
		},
		cause: "iptables_retry", says: `iptables exited with 4 \(lock held\) and ran again`, report: "istio/istio#51739", remedy: `^upgrade iptables`,
	}, {
		name: "iptables-nft, refused and tried again", control: idle, chain: with("refused"),
		cause: "iptables_retry", report: "microsoft/WSL#11884", remedy: "^run iptables-nft by hand .*: nft has no lock",
		says: `iptables-nft exited with 4, because the kernel refused NFT_MSG_NEWRULE \(EINVAL\), and ran again \(3 waits`,
	}, {
		name: "iptables-nft, refused to the end", control: idle, chain: with("gave-up"), fails: true,
		cause: "plugin_error", report: "microsoft/WSL#11884", remedy: "^run that command by hand .*: nft has no lock",
		says: `"could not apply the rules"; its last command, iptables-nft, exited 4, because the kernel refused NFT_MSG_NEWRULE \(EINVAL\) \(2 times\)`,
	}, {
		name: "iptables' lock, taken to the end", control: idle, chain: []rig.Plugin{unmasked, rig.Test("locked")}, fails: true,
		before: func(s *scene, n rig.Net) func() { return hold(s.T, xtablesLock(n)) },
		cause:  "plugin_error", says: `"could not apply the rules"; its last command, iptables, exited 4 \(2 times\)`, remedy: "^$",
	}, {
		name: "IPv6 DAD", control: []rig.Plugin{rig.DualStack()}, chain: []rig.Plugin{rig.DualStack(rig.Conf{"enabledad": true})},
		cause: "ipv6_dad", says: `plugin bridge waited for IPv6 duplicate address detection of `, report: "containernetworking/plugins#680",
		span: [3]string{"dad", "cniscope.address", `:`},
	}, {
		name: "host-local's lock", control: []rig.Plugin{rig.Bridge()},
		before: holds(func(n rig.Net) string { return filepath.Join(n.DataDir, n.Name, "lock") }),
		cause:  "file_lock", says: `waited for file lock .*/lock.*held by scenarios\.test`, report: "containernetworking/plugins#561",
		span: [3]string{"lock", "cniscope.lock.path", `/lock$`},
	}, {
		name: "host-local's walk", control: []rig.Plugin{rig.Bridge()}, before: taken,
		cause: "host_local_scan|cpu_starved", says: `host-local read one file for each allocated address|waited for a CPU`, report: "Azure/azure-container-networking#2817",
	}, {
		name: "the API server", control: []rig.Plugin{rig.Bridge()}, before: answeringAPIServer(500*time.Millisecond, ""),
		chain: []rig.Plugin{rig.Bridge(rig.Conf{"ipam": rig.Conf{"type": "whereabouts"}, "isGateway": false, "ipMasq": false})},
		cause: "api_server", says: `plugin whereabouts waited \(2 times\) for 127\.0\.6\.43:6443, which looks like the API server`, report: "k8snetworkplumbingwg/whereabouts#313",
	}, {
		name: "429", control: idle, chain: with("cilium"), before: busyAgent, fails: true,
		cause: "agent_busy", says: `the agent of plugin cilium rejected the request \(too many requests\); plugin cilium failed \(code `, report: "",
	}, {
		name: "a slow agent", control: idle, chain: with("cilium"), before: slowAgent,
		cause: "agent", says: `plugin cilium waited for scenarios\.test at /run/cniscope-scenario/cilium\.sock`, report: "",
	}, {
		name: "rtnl", control: idle, chain: with("hogger"), before: hogRtnl,
		cause: "kernel_lock", says: `ip waited for kernel lock rtnl`, report: "aws/amazon-vpc-cni-k8s#3764",
	}, {
		name: "nobody listens", control: idle, chain: with("overlay"),
		cause: "agent_refused", says: `failed \d+ times to connect to /run/cniscope-scenario/nobody\.sock \(ENOENT\)`, report: "containerd/containerd#4666",
		span: [3]string{"agent", "cniscope.errno", `^ENOENT$`},
	}, {
		name: "a hung call", control: idle, chain: with("hanger"), cause: "sleep", says: `plugin hanger slept`, hung: true,
	}, {
		name: "a missing binary", control: idle, chain: []rig.Plugin{rig.Bridge(rig.Conf{"ipMasq": false}), rig.Test("mesh")}, fails: true,
		before: func(s *scene, _ rig.Net) func() { s.looked("mesh"); return func() {} },
		cause:  "missing_plugin", says: `^plugin "mesh" cannot start: it is not in `, report: "containerd/containerd#8419",
	}, {
		name: "no loopback", control: []rig.Plugin{rig.Bridge()}, before: without("loopback"), fails: true,
		cause: "missing_plugin", says: `^plugin "loopback" cannot start: it is not in `, report: "containerd/containerd#8419",
	}, {
		name: "a leaked child", control: with("daemon"), chain: with("leaver"),
		cause: "leaked_child", says: `watcher \(pid \d+\) to close the standard output of plugin leaver, which had exited`,
	}, {
		name: "a write to the CNI folder", control: idle, chain: with("sleeper"), before: writesMeanwhile,
		cause: "sleep", says: `plugin sleeper slept(, in [^;]+)?; a file in the CNI directory was written during this call, so other CNI calls waited up to \S+ for this call to end`,
		span: [3]string{"wait", "cni.plugin", `^sleeper$`},
	}, {
		name: "no CPU", control: idle, chain: with("sharer"), before: crowd,
		cause: "cpu_starved", says: `^\S+ of \S+ the processes of the call waited for a CPU`,
	}, {
		name: "PowerShell", control: with("adapter"), chain: with("adapters"),
		cause: "powershell", says: `plugin adapters ran powershell \(2 times\), which ran sleep`, report: "",
	}, {
		name: "a slow command", control: idle, chain: with("adapter"), cause: "slow_command", says: `plugin adapter ran Get-NetAdapter, which ran sleep`,
	}, {
		name: "a computation", control: idle, chain: with("wireguard"), cause: "plugin|cpu_starved", says: `plugin wireguard used \S+ of CPU|waited for a CPU`,
	}} {
		t.Run(c.name, func(t *testing.T) {
			s := s.in(t)
			s.judge(c)
		})
	}
}

func (s *scene) suffers(c judged, n rig.Net) *call {
	if c.before != nil {
		defer c.before(s, n)()
	}
	return s.add(rig.PodOptions{}, c.fails)
}

func (s *scene) judge(c judged) {
	t := s.T
	name := strings.ToLower(regexp.MustCompile(`\W+`).ReplaceAllString(c.name, "-"))
	if c.chain == nil {
		c.chain = c.control
	}
	cause := regexp.MustCompile("^(" + c.cause + ")$")

	s.prefix = name
	s.network(name+"-control", c.control...)
	control := s.add(rig.PodOptions{}, false)
	t.Logf("control: %.0f ms, %s %s", control.Took(), control.Attrs["cniscope.cause"], control.Attrs["cniscope.verdict"])
	// A fast control may wait for a CPU.
	if of := control.Attrs["cniscope.cause"]; cause.MatchString(of) && of != "cpu_starved" {
		t.Errorf("the control has the cause, too: %s", of)
	}
	if control.Took() < 300 && control.Attrs["cniscope.verdict"] != "" {
		t.Errorf("of an ordinary call it is said: %s", control.Attrs["cniscope.verdict"])
	}

	n := s.network(name, c.chain...)
	call := s.suffers(c, n)
	t.Logf("%.0f ms, %s: %s (%s)", call.Took(), call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"])
	if !cause.MatchString(call.Attrs["cniscope.cause"]) {
		t.Errorf("the cause is %s, want %s", call.Attrs["cniscope.cause"], c.cause)
	}
	if !regexp.MustCompile(c.says).MatchString(call.Attrs["cniscope.verdict"]) {
		t.Errorf("the verdict is %q, want %s", call.Attrs["cniscope.verdict"], c.says)
	}
	if remedy := call.Attrs["cniscope.remedy"]; !regexp.MustCompile(c.remedy).MatchString(remedy) {
		t.Errorf("the remedy is %q, want %s", remedy, c.remedy)
	}
	if call.Attrs["cniscope.cause"] == "cpu_starved" {
		c.report = "" // reading files takes CPU: beside other work, the wait for it is the cause
	}
	harness.Equal(t, call.Attrs["cniscope.report"], c.report, "the report")
	if kind, attr, value := c.span[0], c.span[1], regexp.MustCompile(c.span[2]); kind != "" {
		call.accounted(t)
		if !slices.ContainsFunc(call.Below(kind), func(x *span) bool { return value.MatchString(x.Attrs[attr]) }) {
			t.Errorf("no span of kind %s says %s =~ %s: %d spans", kind, attr, value, len(call.Below(kind)))
		}
	}
	marked := slices.ContainsFunc(call.All, func(x *span) bool {
		return x.Attrs["cniscope.kind"] == "hung" && x.Attrs["k8s.pod.name"] == call.Attrs["k8s.pod.name"]
	})
	if c.hung && (!marked || call.Attrs["cniscope.hung"] != "true") {
		s.Error("it hung, and that was not said while it did")
	}
	if sum := call.times(); fmt.Sprintf("%.3f", sum) != fmt.Sprintf("%.3f", call.Took()) {
		t.Errorf("the parts sum up to %f ms of %f", sum, call.Took())
	}
}
