//go:build linux

package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/standin"
)

// stops is a peer that is stopped at a point of the agent's.
func stops(name, point, of string, global bool, says string) behind {
	return behind{
		name: name, global: global, inject: standin.Injection{Point: point, Kind: "stop", Of: of, For: lost},
		cause: "behind_agent", says: says, remedy: `kill -CONT`,
	}
}

// The process that an agent waits for is named with its state, which determines the remedy.
func TestPeersOfTheAgent(t *testing.T) {
	s := set(t, rig.Options{}, slowly)
	s.record()
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}, Disk: true})
	s.each(n, []behind{
		stops("stall-vswitchd", "agent.port", "switch", true, `waited for vs-switchd \(stopped\), through vs-agent and vs-db`),
		stops("stall-ovsdb", "agent.port", "db", false, `plugin vs-cni waited for vs-db \(stopped\), through vs-agent`),
		stops("stall-flows", "agent.flows", "switch", false, `plugin vs-cni waited for vs-switchd \(stopped\), through vs-agent`),
		{
			name: "frozen", inject: standin.Injection{Point: "agent.port", Kind: "freeze", Of: "db", For: lost},
			cause: "behind_agent", says: `waited for vs-db \(frozen`, remedy: `cgroup.freeze`,
		},
		{
			name: "uninterruptible", inject: standin.Injection{Point: "db.insert", Kind: "disk", For: lost},
			cause: "behind_agent", says: `waited for vs-db \(blocked in kernel function \w+\)`, remedy: `fsfreeze -u`,
		},
	})
}

// The same over TCP, with an agent that monitors its database, and one with a periodic command.
func TestBehindAnotherAgent(t *testing.T) {
	s := set(t, rig.Options{}, slowly)
	s.record()
	s.Run("tcp", func(t *testing.T) {
		n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}, TCP: true})
		s.in(t).each(n, []behind{
			stops("tcp-vswitchd", "agent.flows", "switch", true, `waited for vs-switchd \(stopped\), through vs-agent`),
			stops("tcp-ovsdb", "agent.port", "db", true, `waited for vs-db \(stopped\), through vs-agent`),
		})
	})
	s.Run("monitored", func(t *testing.T) {
		n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}, Monitor: true})
		s.in(t).each(n, []behind{stops("monitored-vswitchd", "agent.port", "switch", true, `waited for vs-switchd \(stopped\)`)})
	})
	s.Run("periodic", func(t *testing.T) {
		n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}, Every: 300 * time.Millisecond})
		ran := func() int { return len(namedIn(n.Journal(""), standin.Periodic)) }
		harness.Until(t, "the agent ran its command", func() bool { return ran() > 2 })
		n.SetPeriodic(1500 * time.Millisecond)
		s.in(t).each(n, []behind{{
			name: "periodic", inject: standin.Injection{Point: "agent.port", Kind: "stop", Of: "db", For: lost},
			// The command is periodic once seen without callers, a second after the call
			// (agents.Linger).
			before: func(*scene, rig.Net) func() {
				quiet := standin.Now() + int64(1500*time.Millisecond)
				harness.Until(t, "the agent runs its command while it is not followed", func() bool {
					return slices.ContainsFunc(namedIn(n.Journal(""), standin.Periodic), func(e standin.Entry) bool { return e.Start > quiet })
				})
				return func() {}
			},
			cause: "behind_agent", says: `waited for vs-db \(stopped\)`, remedy: `kill -CONT`,
		}})
	})
}

// An agent's work after its answer belongs to no call.
func TestBehindTheAnswer(t *testing.T) {
	s := set(t, rig.Options{}, slowly)
	s.record()
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}})
	going := behind{name: "goes-on", inject: standin.Injection{Point: standin.Behind, Kind: "anonymous command", For: lost}}
	s.network(going.name, asks(n, going))
	s.prefix = going.name
	answered := s.add(rig.PodOptions{}, false)
	if v := answered.Attrs["cniscope.verdict"]; v != "" && answered.Took() < 300 {
		t.Errorf("of a call that was answered at once it is said: %s", v)
	}
	s.each(n, []behind{stops("behind-the-answer", "agent.port", "db", false, `plugin vs-cni waited for vs-db \(stopped\), through vs-agent`)})
}

func namedIn(all []standin.Entry, name string) (found []standin.Entry) {
	for _, e := range all {
		if e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// Eight pods wait for a stopped switch: it is the cause of every call.
func TestACrowdBehindTheAgent(t *testing.T) {
	const pods = 8
	s := set(t, rig.Options{}, slowly)
	s.record()
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}})
	s.ordinary(n, behind{name: "crowd"})
	s.network("crowd", asks(n, behind{}))
	end := harness.Must(n.Begin(standin.Injection{Kind: "stop", Of: "switch"}, ""))(t)
	time.AfterFunc(lost+time.Second, end)
	s.crowd("crowd", pods)
	cause, remedy, says := "behind_agent", "kill -CONT", regexp.MustCompile(`serving this call or one of \d others, waited for .*vs-switchd \(stopped\)`)
	if !harness.FirstPIDs() {
		cause, remedy, says = "", "", regexp.MustCompile(`vs-db.*serving this call or one of \d others|serving this call or one of \d others.*vs-db`)
	}
	for i := range pods {
		call := s.call(fmt.Sprint("crowd-", i))
		call.accounted(t)
		t.Logf("%s: %s (%s)", call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"], call.Attrs["cniscope.remedy"])
		if v := call.Attrs["cniscope.verdict"]; !says.MatchString(v) {
			t.Errorf("the verdict is %q, want %s", v, says)
		}
		if is, do := call.Attrs["cniscope.cause"], call.Attrs["cniscope.remedy"]; cause != "" && is != cause || !strings.Contains(do, remedy) {
			t.Errorf("the cause is %q, the remedy %q, want %s and %s", is, do, cause, remedy)
		}
		harness.Says(t, call.Attrs["cniscope.biggest_part"], "vs-agent")
	}
}

func TestAnAgentOutOfMemory(t *testing.T) {
	s := set(t, rig.Options{}, slowly)
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}, Memory: 256 << 20})
	s.each(n, []behind{{
		name: "out-of-memory", inject: standin.Injection{Point: "agent.link", Kind: "memory"}, fails: true,
		cause: "agent_oom", says: `vs-agent.*OOM-killed`, remedy: ".",
	}})
}
