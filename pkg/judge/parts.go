package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// PartKind is what kind of thing a call's time went into.
type PartKind string

// The kinds of parts. Every instant of a call belongs to exactly one: to the innermost
// command that ran, else to the innermost plugin, else to nobody; and of what that one
// waited for, to the first of these that it is known of. See account.
const (
	// Locks: somebody waited for a lock on a file.
	Locks PartKind = "lock"
	// KernelLocks: somebody waited for a lock of the kernel's own, such as rtnl.
	KernelLocks PartKind = "kernel lock"
	// Network: the kernel did what a plugin asked it to do to the network.
	Network PartKind = "network configuration"
	// SystemCalls: a plugin was in another system call that took long.
	SystemCalls PartKind = "system call"
	// DAD: a plugin waited until nobody objected to an IPv6 address.
	DAD PartKind = "IPv6 DAD"
	// Agents: a plugin had a connection to another process open, or tried to make one.
	Agents PartKind = "agent"
	// Sleep: a plugin waited for a timer.
	Sleep PartKind = "sleep"
	// Waiting: a plugin waited for files, threads or children, whichever came first.
	Waiting PartKind = "waiting"
	// Commands: an external command was running.
	Commands PartKind = "command"
	// Plugins: a plugin itself was running on a CPU or waiting for one.
	Plugins PartKind = "plugin"
	// Between: no plugin was running; the runtime had the word.
	Between PartKind = "between runs"
	// Unexplained: a plugin was there, and nothing is known of what it did.
	Unexplained PartKind = "unexplained"
)

// unnamed is how a source calls a lock of the kernel of which it knows no more.
const unnamed = "kernel"

// Part is a share of a call's wall time.
type Part struct {
	Kind PartKind
	// Name is the command's or the plugin's, the lock's or the peer's; empty for Between.
	// What a command ran is named with it: "policyctl > sleep".
	Name string
	// In is the plugin or the command that waited longest, if Name is something else, and
	// it is not plain from that.
	In   string
	Time time.Duration
	// Count is how many images of that name, or waits, there were; 0 for Between.
	Count int
	// Detail says who made it wait longest; empty if that is not known.
	Detail string
}

// String says it as a person would: "command iptables (9 times)".
func (p Part) String() string {
	said := p.what()
	var more []string
	if (p.Kind == Locks || p.Kind == KernelLocks) && p.In != "" {
		more = append(more, p.In)
	}
	if p.Count > 1 && p.Kind != Unexplained {
		more = append(more, fmt.Sprintf("%d times", p.Count))
	}
	if len(more) > 0 {
		said += " (" + strings.Join(more, ", ") + ")"
	}
	if p.Detail != "" {
		said += ", " + p.Detail
	}
	return said
}

func (p Part) what() string {
	switch p.Kind {
	case Between:
		return "between plugins, in the runtime"
	case Unexplained:
		return "unexplained, inside plugin " + p.Name
	case Locks:
		if p.Name == "" {
			return "waiting for locks, each time shortly"
		}
		return "waiting for lock " + p.Name
	case KernelLocks:
		if p.Name == "" {
			return "waiting for locks of the kernel, each time shortly"
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
		return "calling " + p.Name + ", from plugin " + p.In
	case Sleep:
		return "asleep, in plugin " + p.Name
	case Waiting:
		return "waiting for something unknown, in plugin " + p.Name
	}
	return string(p.Kind) + " " + p.Name
}

// holder says who had a lock.
func holder(w *timeline.Wait) string {
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
		said += " for pod " + b.Pod.Namespace + "/" + b.Pod.Name
	}
	switch {
	case w.Passed == 1:
		said += ", then by another one"
	case w.Passed > 1:
		said += fmt.Sprintf(", then by %d others", w.Passed)
	}
	return said
}

// ordinary tells a parent that says nothing about its child.
func ordinary(parent string) bool {
	return strings.HasPrefix(parent, "containerd") || parent == "systemd" || parent == "init" || parent == "tini"
}
