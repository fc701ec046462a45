package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// PartKind is what kind of thing a call's time went into.
type PartKind string

// The kinds of parts. Every instant of a call belongs to exactly one (see divide).
const (
	// Locks: waiting for a lock on a file.
	Locks PartKind = "lock"
	// KernelLocks: waiting for a lock inside the kernel, such as rtnl.
	KernelLocks PartKind = "kernel lock"
	// Network: the kernel carried out a plugin's request to configure the network.
	Network PartKind = "network configuration"
	// SystemCalls: a plugin was in some other slow system call.
	SystemCalls PartKind = "system call"
	// DAD: a plugin waited for IPv6 duplicate address detection.
	DAD PartKind = "IPv6 DAD"
	// Agents: a plugin had a connection to an agent open, or tried to open one.
	Agents PartKind = "agent"
	// Sleep: a plugin waited for a timer.
	Sleep PartKind = "sleep"
	// Waiting: a plugin polled files, or waited for threads or children.
	Waiting PartKind = "waiting"
	// Halts: a signal, a debugger or a freezer had stopped a plugin or a command.
	Halts PartKind = "stopped"
	// Commands: an external command was running.
	Commands PartKind = "command"
	// Plugins: a plugin itself was on a CPU or waiting for one.
	Plugins PartKind = "plugin"
	// Between: no plugin was running; the time was the runtime's.
	Between PartKind = "between runs"
	// Unconfirmed: an agent worked, possibly for another call (Part.Confirmed).
	Unconfirmed PartKind = "unconfirmed"
	// Unexplained: a plugin was running, and nothing is known about what it did.
	Unexplained PartKind = "unexplained"
)

// unnamed is the name of a kernel lock of which the source knows nothing more.
const unnamed = "kernel"

// Part is a share of a call's wall time.
type Part struct {
	Kind PartKind
	// Name is the command's or the plugin's, the lock's or the peer's; empty for Between.
	// What a command ran is named with it: "policyctl > sleep".
	Name string
	// In is the plugin or command that waited longest; empty where Name tells.
	In   string
	Time time.Duration
	// Count is the number of images of that name, or of waits; 0 for Between.
	Count int
	// Detail describes what caused the longest wait; empty if unknown.
	Detail string
	// Asked says for whom an agent waited that no plugin called: "asked by agentd, by plugin antrea"; and
	// State what it was found doing for most of the longest wait: "stopped". Empty where that is not known.
	Asked, State string
	// Doing is a clause about what an agent was seen doing meanwhile: "agentd was on a CPU for 900ms of it".
	Doing string
	// Candidate is how much of Time went into what an agent did, perhaps, for another call or for itself.
	Candidate time.Duration

	peer *model.Connection // of the longest, to the agent; of Agents only
	when model.Interval    // of the longest: when it was waited for
}

// String phrases it for people: "command iptables (9 times)".
func (p Part) String() string {
	said := p.What()
	var more []string
	if (p.Kind == Locks || p.Kind == KernelLocks) && p.In != "" {
		more = append(more, p.In)
	}
	if p.State != "" {
		more = append(more, p.State)
	}
	if p.Count > 1 && p.Kind != Unexplained && !p.oneStood() {
		more = append(more, fmt.Sprintf("%d times", p.Count))
	}
	if len(more) > 0 {
		said += " (" + strings.Join(more, ", ") + ")"
	}
	for _, what := range []string{p.Asked, p.Detail} {
		if what != "" {
			said += ", " + what
		}
	}
	if p.Doing != "" {
		said += "; " + p.Doing
	}
	return said
}

// took returns the part with its time, ns of what is only a candidate or not.
func (p Part) took(ns int64, candidate bool) Part {
	p.Time = time.Duration(ns)
	if candidate {
		p.Candidate = p.Time
	}
	return p
}

// Confirmed returns the kind that the part's time counts for in sums: Unconfirmed if it is a candidate's.
func (p *Part) Confirmed() PartKind {
	if p.Candidate > 0 {
		return Unconfirmed
	}
	return p.Kind
}

// Doubtful reports whether most of it is only a candidate.
func (p *Part) Doubtful() bool { return p.Candidate > p.Time/2 }

// oneStood reports whether the state that is told is that of nearly all of the time: the other waits were short,
// and "stopped, 2 times" would say that it was stopped twice.
func (p *Part) oneStood() bool {
	return p.State != "" && 10*(p.when.End-p.when.Start) >= 9*int64(p.Time)
}

// What is what the time went into, in few words: without how often, and who was in the way.
func (p Part) What() string {
	switch p.Kind {
	case Between:
		return "between plugins, in the runtime"
	case Unexplained:
		return "unexplained, inside plugin " + p.Name
	case Locks:
		if p.Name == "" {
			return "waiting for locks, briefly each time"
		}
		return "waiting for lock " + p.Name
	case KernelLocks:
		if p.Name == "" {
			return "waiting for locks of the kernel, briefly each time"
		}
		if p.Name == unnamed {
			return "waiting for a lock of the kernel"
		}
		return "waiting for the kernel's lock " + p.Name
	case Network:
		if p.Name == "" {
			return "network configuration, in short requests of " + p.In
		}
		return "network configuration: " + p.Name + " of " + p.In
	case SystemCalls:
		return "system call " + p.Name + " of " + p.In
	case DAD:
		return "waiting for IPv6 DAD, in plugin " + p.In
	case Agents:
		if p.Asked != "" {
			return "waiting for " + p.Name
		}
		return "calling " + p.Name + ", from plugin " + p.In
	case Halts:
		return "while " + p.Name
	case Sleep:
		return "asleep, in plugin " + p.Name
	case Waiting:
		return "waiting for something unknown, in plugin " + p.Name
	}
	return string(p.Kind) + " " + p.Name
}

// holder describes who held the lock that a wait was for; empty if unknown.
func holder(w *model.Wait) string {
	h := w.Holder
	if h == nil || h.Name == "" && h.PID == 0 {
		return ""
	}
	said := "held by " + h.Name
	if h.Name == "" {
		said = fmt.Sprintf("held by pid %d", h.PID)
	}
	if of := h.Parent; of != "" && of != h.Name && !ordinary(of) {
		said += " of " + of
	}
	if h.Name != "" && h.PID != 0 {
		said += fmt.Sprintf(" (pid %d)", h.PID)
	}
	if b := w.Blame; b != nil && b.Pod.Name != "" {
		said += forPod(b)
	}
	if h.Halted() {
		said += ", which was " + howHalted(h.State, h.By)
	}
	switch {
	case w.Passed == 1:
		said += ", then by another one"
	case w.Passed > 1:
		said += fmt.Sprintf(", then by %d others", w.Passed)
	}
	return said
}

// ordinary reports whether a parent tells nothing about its child.
func ordinary(parent string) bool {
	return strings.HasPrefix(parent, "containerd") || parent == "systemd" || parent == "init" || parent == "tini"
}

// doing describes what the agent of a connection was found doing within an interval; empty if that is nothing.
// It names the agent, so that nobody takes it for the plugin.
func doing(c *model.Connection, when model.Interval) string {
	w, took := c.Work, when.End-when.Start
	s := stateOf(w, when)
	switch said := inWords(s); {
	case w.Gone != 0:
		return nameOf(c) + " ended meanwhile"
	case said != "" && s.State != event.AgentRunning:
		return fmt.Sprintf("%s was %s for %s of it", nameOf(c), said, text.Round(time.Duration(s.Time)))
	case took > 0 && w.CPU >= took:
		return nameOf(c) + " was on a CPU all the time"
	case took > 0 && w.CPU >= took/2:
		return fmt.Sprintf("%s was on a CPU for %s of it", nameOf(c), text.Round(time.Duration(w.CPU)))
	case said != "": // it was ready to run whenever it was looked at
		return fmt.Sprintf("%s was on a CPU, or waiting for one, for %s of it", nameOf(c), text.Round(time.Duration(s.Time)))
	}
	return ""
}

// nameOf is the name of the agent of a connection, or words for it.
func nameOf(c *model.Connection) string {
	if c.Agent == nil || c.Agent.Name == "" {
		return "the agent"
	}
	return c.Agent.Name
}

func detected(d *model.Detection) string {
	said := "for " + d.Address
	if d.On != "" {
		said += " on " + d.On
	}
	if d.State == event.AddressDuplicate {
		said += ", which somebody else has"
	}
	return said
}

// Peer names who was called, as far as known: "agentd at /run/agent.sock".
func Peer(c *model.Connection) string {
	if c.Agent == nil || c.Agent.Name == "" {
		return c.Address
	}
	return c.Agent.Name + " at " + c.Address
}

// peerName names who was waited for by an agent: its program, or else its address.
func peerName(c *model.Connection) string {
	switch {
	case c.Agent != nil && c.Agent.Name != "":
		return c.Agent.Name
	case c.Address == "":
		return "a process that was not found"
	case c.Network == "unix":
		return c.Address + " (process not found)"
	}
	return c.Address // whose process may be on another machine
}
