package judge

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// verbs are the first words of remedies.
var verbs = strings.Fields(`add apply bind bring change delete do drain free give have install kill load lower fix measure mount move put raise read redirect remove
	replace restart resume run set shorten shrink start switch take thaw upgrade`)

// vague matches advice to guess.
var vague = regexp.MustCompile(`(?i)\b(find out|check (what|who|whether|if|that|for)|see (why|what|whether)|look (at|into|for)|make sure|consider|perhaps|maybe|try to|somehow|if possible|and so on)\b`)

const atMost = 40 // words

// plain fails unless a remedy is an instruction.
func plain(t *testing.T, remedy string) {
	t.Helper()
	if remedy == "" {
		return
	}
	words := strings.Fields(remedy)
	if !slices.Contains(verbs, words[0]) {
		t.Errorf("it does not begin with what to do: %s", remedy)
	}
	if found := vague.FindString(remedy); found != "" {
		t.Errorf("%q is no remedy: %s", found, remedy)
	}
	if len(words) > atMost {
		t.Errorf("%d words, %d at most: %s", len(words), atMost, remedy)
	}
	for _, step := range strings.Split(remedy, "; ") { // text.Steps
		if strings.HasSuffix(step, ".") || strings.Count(step, "(") != strings.Count(step, ")") {
			t.Errorf("it is one sentence without a full stop, with its brackets closed: %s", step)
		}
	}
}

// Other remedies are tested with their rules and recordings.
func TestEveryRemedySaysWhatToDo(t *testing.T) {
	for _, about := range Causes() {
		plain(t, about.Remedy)
	}
	who := &event.Actor{PID: 812, Name: "dbd"}
	for _, state := range []event.AgentState{event.AgentStopped, event.AgentFrozen, event.AgentRunning, event.AgentUninterruptible, event.AgentWaiting, event.AgentIdle} {
		for _, function := range []string{"", "nfs_wait_bit_killable", "request_wait_answer", "io_schedule", "rtnl_lock", "percpu_rwsem_wait", "synchronize_rcu", "do_something"} {
			plain(t, remedyFor(who, who.Name, &model.Spent{State: state, Channel: function}))
		}
	}
	for _, address := range []string{
		"10.0.0.1:6443", "127.0.0.1:6640", "192.0.2.7:5432", "[2001:db8::1]:443", "/run/a.sock",
		"10.0.0.53:53", "10.0.0.7:2379", "10.0.0.67:67", "169.254.169.254:80", "127.0.0.1:50051", "127.0.0.1:10090", "127.0.0.1:6784",
	} {
		for _, errno := range []string{"ECONNREFUSED", "ENOENT", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "EACCES"} {
			plain(t, refusal(&model.Connection{Address: address, Error: errno}, "p").Remedy)
		}
		for _, plugin := range []string{"p", "aws-cni", "azure-ipam", "weave-net"} {
			plain(t, silent(&model.Connection{Address: address}, plugin))
		}
	}
	for _, killed := range []string{"", "OOM"} {
		for _, restarted := range []bool{false, true} {
			c := &model.Connection{Address: "/run/a.sock", Agent: who, Work: &model.Work{Own: &model.Image{}, Killed: killed}}
			plain(t, ending(c, "p", restarted).Remedy)
		}
	}
	for _, s := range specials {
		plain(t, Verdict{Cause: s.cause, Remedy: s.cause.remedy()}.beside(strings.Fields(s.plugins)[0]).Remedy)
	}
	for _, command := range []string{"", "iptables", "ip", "ovs-vsctl", "sysctl", "pwsh", "policyctl", "sleep"} {
		plain(t, instead(command))
		plain(t, atOnce(command))
		for _, inner := range []string{"", "sleep"} {
			p := program{name: command, inner: inner, by: []*actor{{plugin: "p"}}, slowest: &model.Image{Program: model.Program{Name: command, Args: []string{"-w", "show"}, Hidden: 2}}}
			plain(t, p.remedy())
		}
	}
}

// Every cause has a name and, except for a plugin's own words, a remedy.
func TestEveryCauseIsKnownInGeneral(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`Cause\w+\s+(?:Cause\s+)?= "(\w+)"`).FindAllSubmatch(source, -1) {
			declared++
			about := Cause(found[1]).About()
			if about.Name == string(about.Cause) && strings.Contains(about.Name, "_") {
				t.Errorf("%s has no name", about.Cause)
			}
			if about.Remedy == "" && about.Cause != CauseFailed {
				t.Errorf("%s has no remedy", about.Cause)
			}
			if len(about.Parts) == 0 && about.Cause != CauseFailed && about.Cause != CauseMissing {
				t.Errorf("%s accounts for no time", about.Cause)
			}
		}
	}
	if known := len(Causes()); declared != known {
		t.Errorf("%d causes are declared, %d known in general", declared, known)
	}
	names := map[string]bool{}
	for _, about := range Causes() {
		if names[about.Name] {
			t.Errorf("two causes are called %s", about.Name)
		}
		names[about.Name] = true
	}
}

// The cause of a kind of part lists that kind.
func TestEveryPartIsPutDownToACause(t *testing.T) {
	for _, kind := range []PartKind{Locks, KernelLocks, Network, SystemCalls, DAD, Agents, Sleep, Waiting, Commands, Plugins, Between, Unexplained} {
		about, of := kind.Cause().About(), false
		for _, part := range about.Parts {
			of = of || part == kind
		}
		if !of {
			t.Errorf("%s is put down to %s, which accounts for %v", kind, about.Cause, about.Parts)
		}
	}
}

// A recording's author, or a user of the node, chooses paths and names in commands that an operator may run as root.
func TestNoRemedyRunsForeignWords(t *testing.T) {
	const hostile, harmless = "/tmp/x;reboot", "'/tmp/x;reboot'"
	chain := event.Obstacle{Kind: event.ObstaclePolicy, Chain: &event.Chain{Backend: "nftables", Family: "ip", Table: "filter", Name: "x;flush ruleset"}}
	gone := &missedPath{Missing: &model.Missing{Missing: &event.Missing{Path: hostile, Error: "EEXIST", Name: "openat"}}, by: &span{plugin: "p"}}
	for of, remedy := range map[string]string{
		"lock":     release(hostile, nil),
		"frozen":   goOn(1, "agent", event.AgentFrozen, hostile),
		"mode":     second(Unstartable(event.Program{Fault: event.FaultMode, File: hostile})),
		"script":   second(Unstartable(event.Program{Fault: event.FaultInterpreter, File: hostile, Needs: `"/bin/sh\r"`})),
		"mount":    second(Unstartable(event.Program{Fault: event.FaultMount, Has: hostile})),
		"sysctl":   strings.ReplaceAll(second(Obstacle(event.Obstacle{Kind: event.ObstacleSwitch, Name: hostile})), hostile+"=1", hostile),
		"table":    strings.ReplaceAll(second(Obstacle(event.Obstacle{Kind: event.ObstacleTable, Option: hostile})), hostile+"=0", hostile),
		"lockfile": gone.verdict(&evidence{call: &model.Call{LockFiles: map[string]*event.LockFile{hostile: {Path: hostile, Gone: true, Maker: &event.Actor{PID: 7}}}}}).Remedy,
		"polled":   gone.verdict(&evidence{call: &model.Call{}}).Remedy,
	} {
		if !strings.Contains(remedy, harmless) || strings.Contains(strings.ReplaceAll(remedy, harmless, ""), hostile) {
			t.Errorf("%s: %s", of, remedy)
		}
	}
	if remedy := second(Obstacle(chain)); strings.Contains(remedy, "flush") {
		t.Errorf("chain: %s", remedy)
	}
}

func second(_, s string) string { return s }
