package judge

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// verbs are the first words of remedies.
var verbs = strings.Fields(`add apply bind bring change delete do free give have install kill load lower fix measure mount move put raise read redirect remove
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
