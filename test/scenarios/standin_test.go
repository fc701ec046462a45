//go:build linux

package scenarios

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/standin"
)

const (
	// lost is how long something stands still behind the agent, and soon how long what needs less.
	lost, soon = 2 * time.Second, time.Second
)

// behind is one thing that goes wrong behind an agent that is shaped like antrea's.
type behind struct {
	name   string
	inject standin.Injection
	before func(*scene, rig.Net) func() // as in judged
	ipam   string                       // the IPAM plugin; standin.IPAM if it is empty
	cause  string                       // regular expressions on the cause,
	says   string                       // on the verdict,
	remedy string                       // and on the remedy; if it is empty there must be none
	fails  bool                         // the call fails
	retry  bool                         // the plugin calls again if its agent dies
	truth  string                       // what of the journal took the time; "injected" if it is empty
	global bool                         // it is found only where the numbers in /proc are the kernel's
}

// asks is the plugin that calls the agent of a node.
func asks(n *standin.Node, c behind) rig.Plugin {
	return func(net rig.Net) rig.Conf {
		conf := rig.Conf{"type": standin.Plugin, "agent": n.Agent(), "retry": c.retry, "ipam": rig.Conf{"type": standin.IPAM}}
		if c.ipam == "host-local" {
			conf["ipam"] = rig.HostLocal(net.DataDir, net.Subnet)
		}
		if c.inject.Kind != "" {
			conf["inject"] = c.inject
		}
		return conf
	}
}

// heldUp is how long a call was really held up, by the programs' journal.
func (c *behind) heldUp(t *testing.T, n *standin.Node, container string) (ms float64) {
	t.Helper()
	what := "injected"
	if c.truth != "" {
		what = c.truth
	}
	for _, e := range n.Journal(container) {
		if e.What == what {
			ms = max(ms, float64(e.End-e.Start)/1e6)
		}
	}
	if ms < 900 && !c.fails && !c.inject.Ends() {
		t.Errorf("it was held up for %.1f ms only", ms)
	}
	return ms
}

// suffersBehind runs a case, and holds the verdict against what was done.
func (s *scene) suffersBehind(n *standin.Node, c behind) {
	t := s.T
	s.prefix = c.name
	net := s.network(c.name, asks(n, c))
	if c.before != nil {
		defer c.before(s, net)()
	}
	call := s.add(rig.PodOptions{}, c.fails)
	c.judges(t, call, c.heldUp(t, n, call.attrs["sandbox.id"]))
}

// ordinary runs the control: the same without what goes wrong.
func (s *scene) ordinary(n *standin.Node, c behind) {
	c.inject = standin.Injection{}
	s.prefix = c.name + "-control"
	s.network(c.name+"-control", asks(n, c))
	control := s.add(rig.PodOptions{}, false)
	if v := control.attrs["cniscope.verdict"]; v != "" && control.took() < 300 {
		s.Errorf("of an ordinary call it is said: %s", v)
	}
	s.Logf("control: %.0f ms, mostly %s", control.took(), control.attrs["cniscope.biggest_part"])
}

// judges checks what is said of a call that was held up for so many milliseconds.
func (c *behind) judges(t *testing.T, call *call, truth float64) {
	t.Helper()
	t.Logf("%.0f ms of %.0f, %s: %s (%s)\nmostly %s for %s ms", truth, call.took(), call.attrs["cniscope.cause"], call.attrs["cniscope.verdict"],
		call.attrs["cniscope.remedy"], call.attrs["cniscope.biggest_part"], call.attrs["cniscope.biggest_part_ms"])
	for _, key := range slices.Sorted(maps.Keys(call.attrs)) {
		if strings.HasPrefix(key, "cniscope.time.") && call.ms(key) > truth/50 {
			t.Logf("%s: %s", key, call.attrs[key])
		}
	}
	for key, want := range map[string]string{"cniscope.cause": "^(" + c.cause + ")$", "cniscope.verdict": c.says} {
		if !regexp.MustCompile(want).MatchString(call.attrs[key]) {
			t.Errorf("%s is %q, want %s", key, call.attrs[key], want)
		}
	}
	if r := call.attrs["cniscope.remedy"]; (c.remedy == "") != (r == "") || !regexp.MustCompile(c.remedy).MatchString(r) {
		t.Errorf("the remedy is %q, want %q", r, c.remedy)
	}
	if sum := call.times(); math.Abs(sum-call.took()) > 1e-5 {
		t.Errorf("the parts sum up to %f ms of %f", sum, call.took())
	}
	if charged := call.charged(); !c.fails && !c.inject.Ends() && charged < 0.95*truth {
		t.Errorf("%.0f ms are charged, of %.0f", charged, truth)
	}
}

// charged is what went into the largest part, in milliseconds. Of a plugin that sleeps it is also what it
// ran: Go's timers wake a thread now and then.
func (c *call) charged() float64 {
	ms := c.ms("cniscope.biggest_part_ms")
	if strings.HasPrefix(c.attrs["cniscope.biggest_part"], "asleep, in plugin") {
		ms += c.ms("cniscope.time.plugins_ms")
	}
	return ms
}

// global reports whether the numbers in /proc are the kernel's own: only then cniscope finds out who has the
// other end of a TCP connection, and who stands still behind a peer.
func global() bool {
	const first = "pid:[4026531836]" // PROC_PID_INIT_INO, include/linux/proc_ns.h
	ns, err := os.Readlink("/proc/self/ns/pid")
	return err == nil && ns == first
}

// each runs cases on a node, those with another IPAM plugin than the one before after a control.
func (s *scene) each(n *standin.Node, cases []behind) {
	first := s.pods
	for i, c := range cases {
		s.Run(c.name, func(t *testing.T) {
			if c.global && !global() {
				t.Skip("this PID namespace is not the kernel's first")
			}
			s := *s
			s.T, s.pods = t, first+100*(i+1)
			if i == 0 || c.ipam != cases[i-1].ipam {
				s.ordinary(n, c)
			}
			s.suffersBehind(n, c)
		})
	}
	s.pods += 100 * (len(cases) + 1)
}

// What an agent runs, what it waits for in the kernel, and what it was found doing is named. What is only
// likely has no remedy.
func TestBehindTheAgent(t *testing.T) {
	s := set(t, rig.Options{}, slowly)
	s.record()
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}})
	s.each(n, []behind{{
		name: "ipam-itself", inject: standin.Injection{Point: "ipam.begin", Kind: "sleep", For: soon},
		cause: "sleep", says: `asleep, in plugin vs-ipam`, remedy: ".",
	}, {
		name: "ipam-lock", ipam: "host-local", before: holds(func(n rig.Net) string { return filepath.Join(n.DataDir, n.Name, "lock") }), truth: "delegate",
		cause: "file_lock", says: `waiting for lock .*/lock`, remedy: ".",
	}, {
		name: "ipam-command", inject: standin.Injection{Point: "ipam.begin", Kind: "command", For: soon},
		cause: "slow_command", says: `in vs-ctl, by plugin vs-ipam`, remedy: ".",
	}, {
		name: "command", inject: standin.Injection{Point: "agent.flows", Kind: "command's child", For: soon},
		cause: "slow_command", says: `in vs-ctl > sleep, by vs-agent`, remedy: ".",
	}, {
		name: "command-of-no-name", inject: standin.Injection{Point: "agent.flows", Kind: "anonymous command", For: soon},
		cause: "slow_command", says: `in vs-ctl, by vs-agent`,
	}, {
		name: "rtnl", inject: standin.Injection{Point: "agent.link", Kind: "rtnl", For: soon},
		cause: "kernel_lock", says: `waiting for the kernel's lock rtnl \(vs-agent\), held by vs-rtnl`,
	}, {
		name: "agent-lock", inject: standin.Injection{Point: "agent.lock", Kind: "lock", For: soon},
		cause: "file_lock", says: `store.lock \(vs-agent\)`,
	}, {
		name: "busy-agent", inject: standin.Injection{Point: "agent.begin", Kind: "compute", For: soon},
		cause: "agent", says: `vs-agent.*CPU`, remedy: ".",
	}, {
		name: "stall-agent", inject: standin.Injection{Point: "agent.link", Kind: "stop", Of: "agent", For: lost},
		cause: "agent_stopped", says: `vs-agent.*stopped`, remedy: `kill -CONT`,
	}, {
		name: "rate-limiter", inject: standin.Injection{Point: "agent.begin", Kind: "sleep", For: lost},
		cause: "agent_idle", says: `vs-agent.*idle`, remedy: `^read what vs-agent logged`,
	}})
}
