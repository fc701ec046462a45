package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

// One fault each, with its finding and remedy.
func TestWhatIsWrongWithAnAgent(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	cilium := fact.Asked{Network: "pods", Plugin: "cilium-cni", Kind: fact.AsksUnix, Address: "/var/run/cilium/cilium.sock"}
	agent := fact.Container{Namespace: "kube-system", Pod: "cilium-x", Name: "cilium-agent", State: "running", Started: now, SandboxReady: true, Owner: "Cilium", LastLine: "waiting for 10.96.0.1", LineBefore: "fatal: 10.96.0.1"}
	asked := func(name string, agent fact.Agent, also func(*fact.Facts), level Level, says ...string) change {
		return change{"cni-agent", name, func(f *fact.Facts) {
			if f.Agents.Value = []fact.Agent{agent}; also != nil {
				also(f)
			}
		}, level, says}
	}
	again := func(change func(*fact.Container)) func(*fact.Facts) {
		return func(f *fact.Facts) {
			f.Containers.Value = []fact.Container{agent}
			change(&f.Containers.Value[0])
		}
	}
	judged(t, []change{
		asked("it answers", fact.Agent{Asked: cilium, Reach: fact.Answers}, nil, ""),
		asked("it cannot be told", fact.Agent{Asked: cilium, Reach: fact.Unknown, Err: "permission denied"}, nil, ""),
		asked("its file is there", fact.Agent{Asked: fact.Asked{Plugin: "flannel", Kind: fact.AsksFile, Address: "/run/flannel/subnet.env"}, Reach: fact.Answers}, nil, ""),
		asked("missing, nobody", fact.Agent{Asked: cilium, Reach: fact.Missing, Err: "no such file or directory"}, nil, Problem, "plugin cilium-cni of network \"pods\" asks its agent at /var/run/cilium/cilium.sock: there is no such socket", "this address is the default of cilium-cni", "no process and no container", "NetworkReady=true", "start the plugin's agent again"),
		asked("missing, it starts", fact.Agent{Asked: cilium, Reach: fact.Missing}, again(func(*fact.Container) {}), Warning, "wait: container cilium-agent started 0s ago", "the last log line before the restart: fatal: 10.96.0.1", "container cilium-agent of pod kube-system/cilium-x: running", "its last log line: waiting for 10.96.0.1", "kubectl -n kube-system logs cilium-x -c cilium-agent", "not: no process"),
		asked("missing, it has started", fact.Agent{Asked: cilium, Reach: fact.Missing}, again(func(c *fact.Container) { c.Started = now.Add(-time.Minute) }), Problem, "delete pod cilium-x", "not: wait: "),
		asked("missing, it fails again and again", fact.Agent{Asked: cilium, Reach: fact.Missing}, again(func(c *fact.Container) { c.Restarts = 3 }), Problem, "not: wait: "),
		asked("missing, a process", fact.Agent{Asked: cilium, Reach: fact.Missing}, func(f *fact.Facts) {
			f.Processes.Value = []fact.Process{{PID: 7, Name: "cilium-agent", HostNet: true, Start: now, LastLine: "waiting for x"}}
		}, Problem, "process 7 is cilium-agent", "its last log line: waiting for x", "journalctl _PID=7", "not: no process"),
		asked("refused", fact.Agent{Asked: cilium, Reach: fact.Refused, Made: now, Err: "connection refused"}, nil, Problem, "no process listens there", "the socket was made at 2027-01-15T08:00:00Z"),
		asked("stopped", fact.Agent{Asked: cilium, Reach: fact.Silent, Process: &fact.Server{PID: 7, Name: "cilium-agent", State: event.AgentStopped, Started: now}, Containers: []fact.Container{agent}}, nil, Problem, "the listening process 7 (cilium-agent) is stopped", "kill -CONT 7", "pod kube-system/cilium-x"),
		asked("deaf", fact.Agent{Asked: cilium, Reach: fact.Silent, Process: &fact.Server{PID: 7, Name: "cilium-agent", State: event.AgentUninterruptible, Waits: "nfs_wait"}}, nil, Problem, "accepts no connection", "immune to signals (state D) in nfs_wait", "/proc/7/stack"),
		asked("frozen", fact.Agent{Asked: cilium, Reach: fact.Silent, Process: &fact.Server{PID: 7, Name: "cilium-agent", State: event.AgentFrozen, Group: "/sys/fs/cgroup/x"}}, nil, Problem, "is frozen by its cgroup", "echo 0 > /sys/fs/cgroup/x/cgroup.freeze"),
		asked("no file", fact.Agent{Asked: fact.Asked{Network: "cbr0", Plugin: "flannel", Kind: fact.AsksFile, Address: "/run/flannel/subnet.env"}, Reach: fact.Missing}, nil, Problem, "reads its agent's file /run/flannel/subnet.env: there is no such file"),
		asked("API away", fact.Agent{Asked: fact.Asked{Network: "k8s", Plugin: "calico", Kind: fact.AsksKubeconfig, Address: "/etc/k"}, Server: "10.96.0.1:443", Reach: fact.Silent, Err: "i/o timeout"}, nil, Problem, "asks the API server at 10.96.0.1:443 (/etc/k): there is no answer", "curl -k https://10.96.0.1:443/livez", "start the service proxy", "not: no process"),
		asked("seen once, gone now", fact.Agent{Asked: fact.Asked{Network: "pods", Plugin: "x", Kind: fact.AsksTCP, Address: "127.0.0.1:9", Seen: true}, Reach: fact.Refused, Known: &control.Agent{Name: "xd", PID: 9, Answered: now}}, nil, Warning, "a running cniscope saw", "cniscope last saw an answer at", "start the plugin's agent again (last seen: xd)"),
		asked("seen once, stopped now, beside its call", fact.Agent{Asked: fact.Asked{Network: "pods", Plugin: "x", Kind: fact.AsksUnix, Address: "/run/x.sock", Seen: true}, Reach: fact.Silent, Known: &control.Agent{Name: "xd", PID: 9, Answered: now}, Process: &fact.Server{PID: 9, Name: "xd", State: event.AgentStopped}}, func(f *fact.Facts) {
			f.Scope.Value.Calls = []control.Call{{Command: "ADD", IfName: "eth0", Namespace: "shop", Pod: "a", Asks: "/run/x.sock", Asking: 34 * time.Second}}
		}, Problem, "kill -CONT 9", "has waited for the agent for 34s"),
		asked("seen once, missed now", fact.Agent{Asked: fact.Asked{Network: "pods", Plugin: "x", Kind: fact.AsksTCP, Address: "127.0.0.1:9", Seen: true}, Reach: fact.Refused, Known: &control.Agent{Name: "xd", PID: 9, Answered: now, Failed: now, Failures: 3, Error: "ECONNREFUSED"}}, nil, Problem, "3 calls fail there since", "ECONNREFUSED"),
		asked("mute", fact.Agent{Asked: cilium, Reach: fact.Answers}, func(f *fact.Facts) {
			f.Scope.Value.Calls = []control.Call{{Command: "ADD", IfName: "eth0", Namespace: "shop", Pod: "a", Asks: "/run/cilium/cilium.sock", Asking: 25 * time.Second}}
		}, Problem, "the agent accepts connections, but does not answer 1 call", "pod shop/a has waited for the agent for 25s"),
	}...)
}

func TestCallsThatFailed(t *testing.T) {
	f := whole()
	failure := control.Failure{Time: f.Now.Add(-time.Minute), Took: 30 * time.Second, Namespace: "shop", Pod: "a", Command: "ADD", Network: "pods", Plugin: "bridge", Says: "agent_refused", Remedy: "start it"}
	old := failure
	old.Time = f.Now.Add(-time.Hour)
	f.Scope.Value.Recent.Failures = []control.Failure{old}
	if r := Judge(f); len(r.Findings) > 0 {
		t.Errorf("that was long ago: %+v", r.Findings)
	}
	f.Scope.Value.Recent.Failures = []control.Failure{old, failure, failure}
	r := Judge(f)
	if len(r.Findings) != 1 || r.Findings[0].Level != Warning || !strings.Contains(r.Findings[0].Summary, "2 CNI ADDs of network \"pods\" failed") ||
		!strings.Contains(r.Findings[0].Evidence[0], "pod shop/a, plugin bridge, after 30s: agent_refused") || r.Findings[0].Remedy[0] != "start it" {
		t.Errorf("%+v", r.Findings)
	}
	failure.Network = "" // the plugin read no configuration
	f.Scope.Value.Recent.Failures = []control.Failure{failure}
	if r := Judge(f); len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Summary, "1 CNI ADD failed in the last") {
		t.Errorf("of an unknown network: %+v", r.Findings)
	}
	failure.Network = "pods"
	f.Scope.Value.Recent.Failures = []control.Failure{failure, failure}
	f.Scope.Value.Recent.Worked = map[string]time.Time{"pods DEL": f.Now, "pods ADD": f.Now}
	if r := Judge(f); len(r.Findings) != 1 || r.Findings[0].Level != Note {
		t.Errorf("others succeeded since: %+v", r.Findings)
	}
	f.Scope.Err = control.ErrNotRunning
	for _, c := range Judge(f).Checks {
		if c.Name == "failed-calls" && (c.State != NotApplicable || !strings.Contains(c.Reason, "cniscope does not run here")) {
			t.Errorf("%+v", c)
		}
	}
}

// A waiting writer is quoted, also outside containers.
func TestWhoHasNotWrittenTheConfiguration(t *testing.T) {
	f := whole()
	f.CRI.Value.Network, f.CRI.Value.Loaded, f.Folder.Value.Networks = false, nil, nil
	f.Agents.Value = nil
	said := func() string {
		r := Judge(f)
		i := slices.IndexFunc(r.Findings, func(x Finding) bool { return x.Check == "network-ready" })
		if i < 0 {
			t.Fatalf("%+v", r.Findings)
		}
		return all(r.Findings[i])
	}
	if all := said(); !strings.Contains(all, "install a CNI") {
		t.Error(all)
	}
	f.Processes.Value = []fact.Process{{PID: 7, Name: "cilium-agent", HostNet: true, Start: f.Now, LastLine: "waiting for 10.96.0.1", Container: "c1"}}
	if all := said(); strings.Contains(all, "install a CNI") || !strings.Contains(all, "by cilium-agent (process 7") || !strings.Contains(all, "waiting for 10.96.0.1") {
		t.Error(all)
	}
	f.Containers.Value = []fact.Container{{Namespace: "kube-system", Pod: "cilium-x", ID: "c1", Name: "cilium-agent", State: "running", SandboxReady: true, Owner: "Cilium", LastLine: "level=info waiting for 10.96.0.1"}}
	if all := said(); strings.Contains(all, "process 7") || !strings.Contains(all, "the last log line of cilium-agent (running) of pod kube-system/cilium-x: level=info waiting") {
		t.Error(all)
	}
	f.Processes.Err = errors.New("no")
	_ = said()
}
