package judge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/pkg/timeline"
)

// stateOf returns in which state an agent was longest within an interval, but for idle; nil if it was in none
// for the share worth of that time.
func stateOf(w *timeline.Work, when timeline.Interval) *timeline.Spent {
	if w == nil {
		return nil
	}
	for _, s := range w.Spent(when) { // longest first
		if s.State != event.AgentIdle && float64(s.Time) >= worth*float64(when.End-when.Start) {
			return &s
		}
	}
	return nil
}

// inWords describes a state: "stopped". Empty for idle, and for one that is not known.
func inWords(s *timeline.Spent) string {
	if s == nil {
		return ""
	}
	switch s.State {
	case event.AgentStopped:
		return "stopped"
	case event.AgentFrozen:
		return "frozen"
	case event.AgentRunning:
		return "on a CPU"
	case event.AgentUninterruptible:
		return strings.TrimSpace("uninterruptible in the kernel " + inside(s.Channel))
	case event.AgentWaiting:
		return strings.TrimSpace("waiting in the kernel " + inside(s.Channel))
	}
	return ""
}

func inside(function string) string {
	if function == "" {
		return ""
	}
	return "in " + function
}

// stateIn is the state of a peer as it stands in brackets: with its time, unless that is nearly all of it.
func stateIn(w *timeline.Work, when timeline.Interval) string {
	s := stateOf(w, when)
	said := inWords(s)
	if said != "" && float64(s.Time) < enough*float64(when.End-when.Start) {
		said += " for " + text.Round(time.Duration(s.Time)).String()
	}
	return said
}

// remedyFor says what to do about a process that others wait for, by the state it was in meanwhile; empty
// if that is not known, or calls for nothing.
func remedyFor(who *event.Actor, name string, s *timeline.Spent) string {
	if s == nil || who == nil {
		return ""
	}
	switch s.State {
	case event.AgentStopped:
		return fmt.Sprintf("%s was stopped by a signal (SIGSTOP) or a debugger: if /proc/%d/status still says State: T, kill -CONT %[2]d resumes it; a TracerPid there other than 0 is the debugger, else find out what sends the signal",
			name, who.PID)
	case event.AgentFrozen:
		return fmt.Sprintf("the cgroup of %s is frozen: write 0 to its cgroup.freeze (/proc/%d/cgroup says which it is), or thaw it with whatever froze it (docker unpause, a checkpoint tool)", name, who.PID)
	case event.AgentRunning:
		return fmt.Sprintf("give %s more CPU time or less work: if it is throttled (nr_throttled in its cgroup's cpu.stat grows), raise its CPU limit; perf record -p %d shows what it computes", name, who.PID)
	case event.AgentUninterruptible:
		return fmt.Sprintf("%s (cat /proc/%d/stack shows where)", stuckIn(s.Channel, name), who.PID)
	}
	return ""
}

// stuckIn says what a process in an uninterruptible wait (D) waits for, by the function of the kernel.
func stuckIn(function, name string) string {
	for _, known := range []struct {
		parts []string
		says  string
	}{
		{[]string{"nfs", "rpc_", "cifs", "smb"}, "%s waits for a network file system: bring its server back, or unmount it (umount -f -l)"},
		{[]string{"fuse", "request_wait_answer"}, "%s waits for a FUSE file system: restart the program that serves it, or unmount it (fusermount -u)"},
		{[]string{"io_schedule", "blk", "jbd2", "ext4", "xfs", "btrfs", "folio_wait", "wait_on_page", "writeback", "fsync"}, "%s waits for a disk: put its files on a faster one, or take away what else writes to it (iostat -x 1, iotop)"},
		{[]string{"rtnl"}, "%s waits for the kernel's lock on network configuration (rtnl): make fewer changes at once"},
		{[]string{"percpu_rwsem", "sb_start"}, "%s waits for a file system that seems to be frozen: fsfreeze -u thaws it"},
		{[]string{"synchronize_rcu", "rcu_barrier", "cleanup_net"}, "%s waits for the kernel to finish removing interfaces or namespaces: start or delete fewer pods at once"},
	} {
		if slices.ContainsFunc(known.parts, func(part string) bool { return strings.Contains(function, part) }) {
			return fmt.Sprintf(known.says, name)
		}
	}
	return fmt.Sprintf("%s is in an uninterruptible wait in the kernel, mostly for a disk, a network file system or a device: dmesg tells if one of them fails", name)
}
