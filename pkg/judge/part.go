package judge

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// PartKind is what a call's time went into.
type PartKind string

// The kinds of parts. Every instant of a call belongs to exactly one (divide).
const (
	Locks       PartKind = "lock"
	KernelLocks PartKind = "kernel lock"
	// Network: requests that the kernel carried out.
	Network     PartKind = "network configuration"
	SystemCalls PartKind = "system call"
	DAD         PartKind = "IPv6 DAD"
	// Agents: a connection to an agent was open, or tried.
	Agents PartKind = "agent"
	Sleep  PartKind = "sleep"
	// Waiting: polling files, or waiting for threads or children.
	Waiting PartKind = "waiting"
	// Halts: stopped by a signal, a debugger or a freezer.
	Halts    PartKind = "stopped"
	Commands PartKind = "command"
	// Plugins: on a CPU, or waiting for one.
	Plugins PartKind = "plugin"
	// Between: only the runtime was running.
	Between PartKind = "between runs"
	// Unconfirmed: an agent worked, possibly for another call.
	Unconfirmed PartKind = "unconfirmed"
	Unexplained PartKind = "unexplained"
)

const unnamed = "kernel"

// Part is a share of a call's wall time.
type Part struct {
	Kind PartKind
	// Name of the command, plugin, lock or peer: "policyctl > sleep". Empty for Between.
	Name string
	// In is the plugin or command that waited longest, unless Name says it.
	In   string
	Time time.Duration
	// Count of images or waits.
	Count int
	// Detail is the cause of the longest wait.
	Detail string
	// Asked names the callers of an agent that no plugin called: "through agentd and dbd". State is its main state
	// during the longest wait: "stopped".
	Asked, State string
	// Doing describes an agent: "agentd was on a CPU for 900ms".
	Doing string
	// Candidate is the share of Time that an agent may have spent otherwise.
	Candidate time.Duration

	peer *model.Connection // longest wait for an agent
	when model.Interval    // longest wait
}

// String phrases it for people: "command iptables (9 times)".
func (p Part) String() string {
	said := p.What()
	var more []string
	if (p.Kind == Locks || p.Kind == KernelLocks) && p.In != "" {
		said = p.In + " waited " + strings.TrimPrefix(said, "waiting ")
	}
	if p.Kind == DAD {
		if said += p.Detail; p.Count > 1 {
			said += " and other addresses"
		}
	}
	if p.State != "" {
		more = append(more, p.State)
	}
	if p.Count > 1 && p.Kind != Unexplained && !p.oneStood() {
		unit := "times"
		if p.Kind == DAD {
			unit = "waits"
		}
		more = append(more, fmt.Sprintf("%d %s", p.Count, unit))
	}
	if len(more) > 0 {
		said += " (" + strings.Join(more, ", ") + ")"
	}
	for _, what := range []string{p.Asked, p.Detail} {
		if what != "" && p.Kind != DAD {
			said += ", " + what
		}
	}
	if p.Doing != "" {
		said += "; " + p.Doing
	}
	return said
}

func (p Part) took(ns int64, candidate bool) Part {
	p.Time = time.Duration(ns)
	if candidate {
		p.Candidate = p.Time
	}
	return p
}

// Confirmed returns the kind for sums: Unconfirmed for a candidate.
func (p *Part) Confirmed() PartKind {
	if p.Candidate > 0 {
		return Unconfirmed
	}
	return p.Kind
}

// Doubtful reports whether most of it is a candidate.
func (p *Part) Doubtful() bool { return p.Candidate > p.Time/2 }

// oneStood reports whether State covers nearly all of the time, so that a count would mislead.
func (p *Part) oneStood() bool {
	return p.State != "" && 10*(p.when.End-p.when.Start) >= 9*int64(p.Time)
}

// What describes the part without counts and holders.
func (p Part) What() string {
	switch p.Kind {
	case Between:
		return "the runtime ran no plugin"
	case Unexplained:
		return "plugin " + p.Name + " did unobserved work"
	case Locks:
		if p.Name == "" {
			return "waiting for file locks, briefly each time"
		}
		return "waiting for file lock " + p.Name
	case KernelLocks:
		if p.Name == "" {
			return "waiting for kernel locks, briefly each time"
		}
		if p.Name == unnamed {
			return "waiting for a kernel lock"
		}
		return "waiting for kernel lock " + p.Name
	case Network:
		if p.Name == "" {
			return p.In + " configured the network in short requests"
		}
		return p.In + " waited for network configuration " + p.Name
	case SystemCalls:
		return p.In + " waited in system call " + p.Name
	case DAD:
		return "plugin " + p.In + " waited for IPv6 duplicate address detection"
	case Agents:
		return "plugin " + p.In + " waited for " + p.Name
	case Halts:
		return p.Name
	case Sleep:
		return "plugin " + p.Name + " slept"
	case Waiting:
		return "plugin " + p.Name + " waited for something unobserved"
	}
	return string(p.Kind) + " " + p.Name
}

func holder(w *model.Wait) string {
	h := w.Holder
	if h == nil || h.Name == "" && h.PID == 0 {
		return ""
	}
	pid := fmt.Sprintf("pid %d", h.PID)
	said := "held by " + cmp.Or(h.Name, pid)
	var about []string
	if h.Name != "" && h.PID != 0 {
		about = append(about, pid)
	}
	if of := h.Parent; of != "" && of != h.Name && !ordinary(of) {
		about = append(about, "child of "+of)
	}
	if len(about) > 0 {
		said += " (" + strings.Join(about, ", ") + ")"
	}
	if b := w.Blame; b != nil && b.Pod.Name != "" {
		said += forPod(b)
	}
	if h.Halted() {
		said += ", which was " + howHalted(h.State, h.By)
	}
	switch {
	case w.Passed == 1:
		said += ", then by another process"
	case w.Passed > 1:
		said += fmt.Sprintf(", then by %d other processes", w.Passed)
	}
	return said
}

func ordinary(parent string) bool {
	return strings.HasPrefix(parent, "containerd") || parent == "systemd" || parent == "init" || parent == "tini"
}

func inFunction(w *model.Work) string {
	switch {
	case w == nil || len(w.Stack) == 0:
		return ""
	case w.Perhaps:
		return ", possibly in " + model.CallPath(w.Stack)
	}
	return ", in " + model.CallPath(w.Stack)
}

func (s *span) in() string {
	if len(s.image.In) == 0 {
		return ""
	}
	return "in " + model.CallPath(s.image.In)
}

// doing describes an agent within an interval, by name.
func doing(c *model.Connection, when model.Interval) string {
	said := spending(c, when)
	in := inFunction(c.Work)
	if said == "" && in != "" {
		return nameOf(c) + " was" + strings.TrimPrefix(in, ",")
	}
	return said + in
}

func spending(c *model.Connection, when model.Interval) string {
	w, took := c.Work, when.End-when.Start
	s := stateOf(w, when)
	switch said := inWords(s); {
	case w.Gone != 0:
		return nameOf(c) + " exited during the call"
	case said != "" && s.State != event.AgentRunning:
		return fmt.Sprintf("%s was %s for %s", nameOf(c), said, text.Round(time.Duration(s.Time)))
	case took > 0 && w.CPU >= took:
		return nameOf(c) + " was on a CPU all the time"
	case took > 0 && w.CPU >= took/2:
		return fmt.Sprintf("%s was on a CPU for %s", nameOf(c), text.Round(time.Duration(w.CPU)))
	case said != "" && 0 < w.CPU && w.CPU < s.Time: // ready to run at every sample
		return fmt.Sprintf("%s was on a CPU for %s, and waited for a CPU for %s", nameOf(c),
			text.Round(time.Duration(w.CPU)), text.Round(time.Duration(s.Time-w.CPU)))
	case said != "":
		return fmt.Sprintf("%s was ready to run for %s", nameOf(c), text.Round(time.Duration(s.Time)))
	}
	return ""
}

func nameOf(c *model.Connection) string {
	if c.Agent == nil || c.Agent.Name == "" {
		return "the agent"
	}
	return c.Agent.Name
}

func detected(d *model.Detection) string {
	said := " of " + d.Address
	if d.On != "" {
		said += " on " + d.On
	}
	if d.State == event.AddressDuplicate {
		said += ", which another host uses"
	}
	return said
}

// Peer names the called process: "agentd at /run/agent.sock".
func Peer(c *model.Connection) string {
	if c.Agent == nil || c.Agent.Name == "" {
		return c.Address
	}
	return c.Agent.Name + " at " + c.Address
}

func peerName(c *model.Connection) string {
	switch {
	case c.Agent != nil && c.Agent.Name != "":
		return c.Agent.Name
	case c.Address == "":
		return "a process that was not found"
	case c.Network == "unix":
		return c.Address + " (process not found)"
	}
	return c.Address // may be on another machine
}
