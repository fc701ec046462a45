//go:build linux

package scenarios

import (
	"maps"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/standin"
)

const (
	lost, soon = 2 * time.Second, time.Second
)

// behind is a fault behind an agent shaped like antrea's.
type behind struct {
	name   string
	inject standin.Injection
	before func(*scene, rig.Net) func() // as in judged
	ipam   string
	cause  string
	says   string
	remedy string
	fails  bool
	retry  bool   // the plugin retries if its agent exits
	truth  string // the journal's entry with the time; default "injected"
	global bool   // needs the kernel's PIDs in /proc
}

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

func (s *scene) suffersBehind(n *standin.Node, c behind) {
	t := s.T
	s.prefix = c.name
	net := s.network(c.name, asks(n, c))
	if c.before != nil {
		defer c.before(s, net)()
	}
	call := s.add(rig.PodOptions{}, c.fails)
	c.judges(t, call, c.heldUp(t, n, call.Attrs["sandbox.id"]))
}

func (s *scene) ordinary(n *standin.Node, c behind) {
	c.inject = standin.Injection{}
	s.prefix = c.name + "-control"
	s.network(c.name+"-control", asks(n, c))
	control := s.add(rig.PodOptions{}, false)
	if v := control.Attrs["cniscope.verdict"]; v != "" && control.Took() < 300 {
		s.Errorf("of an ordinary call it is said: %s", v)
	}
	s.Logf("control: %.0f ms, mostly %s", control.Took(), control.Attrs["cniscope.biggest_part"])
}

func (c *behind) judges(t *testing.T, call *call, truth float64) {
	t.Helper()
	t.Logf("%.0f ms of %.0f, %s: %s (%s)\nmostly %s for %s ms", truth, call.Took(), call.Attrs["cniscope.cause"], call.Attrs["cniscope.verdict"],
		call.Attrs["cniscope.remedy"], call.Attrs["cniscope.biggest_part"], call.Attrs["cniscope.biggest_part_ms"])
	for _, key := range slices.Sorted(maps.Keys(call.Attrs)) {
		if strings.HasPrefix(key, "cniscope.time.") && call.Ms(key) > truth/50 {
			t.Logf("%s: %s", key, call.Attrs[key])
		}
	}
	for key, want := range map[string]string{"cniscope.cause": "^(" + c.cause + ")$", "cniscope.verdict": c.says} {
		if !regexp.MustCompile(want).MatchString(call.Attrs[key]) {
			t.Errorf("%s is %q, want %s", key, call.Attrs[key], want)
		}
	}
	if r := call.Attrs["cniscope.remedy"]; (c.remedy == "") != (r == "") || !regexp.MustCompile(c.remedy).MatchString(r) {
		t.Errorf("the remedy is %q, want %q", r, c.remedy)
	}
	if sum := call.times(); math.Abs(sum-call.Took()) > 1e-5 {
		t.Errorf("the parts sum up to %f ms of %f", sum, call.Took())
	}
	if charged := call.charged(); !c.fails && !c.inject.Ends() && charged < 0.95*truth {
		t.Errorf("%.0f ms are charged, of %.0f", charged, truth)
	}
}

// charged includes a sleeping plugin's run time, because Go's timers wake threads. A command's time is that of its
// whole chain: the biggest part is the last program's alone, without the start of those before it.
func (c *call) charged() float64 {
	switch ms, part := c.Ms("cniscope.biggest_part_ms"), c.Attrs["cniscope.biggest_part"]; {
	case strings.HasPrefix(part, "plugin ") && strings.Contains(part, " slept"):
		return ms + c.Ms("cniscope.time.plugins_ms")
	case strings.HasPrefix(part, "command "):
		var said time.Duration // the command with its children; unconfirmed time is in no sum
		if c.Attrs["cniscope.cause"] == "slow_command" {
			text, _, _ := strings.Cut(c.Attrs["cniscope.verdict"], " of ")
			said, _ = time.ParseDuration(text)
		}
		return max(ms, c.Ms("cniscope.time.commands_ms"), said.Seconds()*1000)
	default:
		return ms
	}
}

// each runs cases on a node, with a control after each change of the IPAM plugin.
func (s *scene) each(n *standin.Node, cases []behind) {
	for i, c := range cases {
		s.Run(c.name, func(t *testing.T) {
			if c.global && !harness.FirstPIDs() {
				t.Skip("this PID namespace is not the kernel's first")
			}
			s := s.in(t)
			if i == 0 || c.ipam != cases[i-1].ipam {
				s.ordinary(n, c)
			}
			s.suffersBehind(n, c)
		})
	}
}

// An agent's commands, kernel waits and state are named. Unconfirmed causes have no remedy.
func TestBehindTheAgent(t *testing.T) {
	s := set(t, rig.Options{}, slowly)
	s.record()
	n := standin.Start(t, standin.Options{Env: []string{s.rig.Env()}})
	s.each(n, []behind{{
		name: "ipam-itself", inject: standin.Injection{Point: "ipam.begin", Kind: "sleep", For: soon},
		cause: "sleep", says: `plugin vs-ipam slept`, remedy: ".",
	}, {
		name: "ipam-lock", ipam: "host-local", before: holds(func(n rig.Net) string { return filepath.Join(n.DataDir, n.Name, "lock") }), truth: "delegate",
		cause: "file_lock", says: `waited for file lock .*/lock`, remedy: ".",
	}, {
		name: "ipam-command", inject: standin.Injection{Point: "ipam.begin", Kind: "command", For: soon},
		cause: "slow_command", says: `plugin vs-ipam ran vs-ctl`, remedy: ".",
	}, {
		name: "command", inject: standin.Injection{Point: "agent.flows", Kind: "command's child", For: soon},
		cause: "slow_command", says: `vs-agent at .* ran vs-ctl, which ran sleep`, remedy: ".",
	}, {
		name: "command-of-no-name", inject: standin.Injection{Point: "agent.flows", Kind: "anonymous command", For: soon},
		cause: "slow_command", says: `vs-agent at .* ran vs-ctl`,
	}, {
		name: "rtnl", inject: standin.Injection{Point: "agent.link", Kind: "rtnl", For: soon},
		cause: "kernel_lock", says: `vs-agent waited for kernel lock rtnl( \(\d times\))?, held by vs-rtnl`,
	}, {
		name: "agent-lock", inject: standin.Injection{Point: "agent.lock", Kind: "lock", For: soon},
		cause: "file_lock", says: `vs-agent waited for file lock .*store\.lock`,
	}, {
		name: "busy-agent", inject: standin.Injection{Point: "agent.begin", Kind: "compute", For: soon},
		cause: "agent", says: `vs-agent.*CPU`, remedy: ".",
	}, {
		name: "stall-agent", inject: standin.Injection{Point: "agent.link", Kind: "stop", Of: "agent", For: lost},
		cause: "agent_stopped", says: `vs-agent.*stopped`, remedy: `kill -CONT`,
	}, {
		name: "rate-limiter", inject: standin.Injection{Point: "agent.begin", Kind: "sleep", For: lost},
		cause: "agent_idle", says: `vs-agent.*idle`, remedy: `^read vs-agent's log`,
	}})
}
