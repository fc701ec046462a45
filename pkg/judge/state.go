package judge

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/text"
)

// stateOf returns the longest state within an interval other than idle; nil if shorter than worth of it.
func stateOf(w *model.Work, when model.Interval) *model.Spent {
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

func inWords(s *model.Spent) string {
	if s == nil {
		return ""
	}
	switch s.State {
	case event.AgentStopped, event.AgentFrozen:
		return howHalted(s.State, s.By)
	case event.AgentRunning:
		return "on a CPU"
	case event.AgentUninterruptible:
		return "blocked in " + inside(s.Channel)
	case event.AgentWaiting:
		return "waiting in " + inside(s.Channel)
	}
	return ""
}

// howHalted describes a halt: "traced by gdb (pid 812)".
func howHalted(state event.AgentState, by string) string {
	switch {
	case state == event.AgentFrozen && by != "":
		return "frozen by " + by
	case state == event.AgentFrozen:
		return "frozen"
	case by != "":
		return "traced by " + by
	}
	return "stopped"
}

func goOn(pid uint32, name string, state event.AgentState, by string) string {
	switch {
	case state == event.AgentFrozen && path.Base(by) == "freezer.state":
		return fmt.Sprintf("thaw %s: echo THAWED > %s, or use the tool that froze it (docker unpause)", name, text.Shell(by))
	case state == event.AgentFrozen && by != "":
		return fmt.Sprintf("thaw %s: echo 0 > %s, or use the tool that froze it (docker unpause)", name, text.Shell(by))
	case state == event.AgentFrozen:
		return fmt.Sprintf("thaw %s: write 0 to its cgroup.freeze (/proc/%d/cgroup names the cgroup), or use the tool that froze it (docker unpause)", name, pid)
	case by != "":
		return fmt.Sprintf("kill %s, or detach it, to resume %s; if /proc/%d/status then says State: T, run kill -CONT %[3]d", by, name, pid)
	}
	return fmt.Sprintf("run kill -CONT %[1]d to resume %[2]s if /proc/%[1]d/status still says State: T; detach the debugger of %[2]s if TracerPid in that file is not 0", pid, name)
}

func inside(function string) string {
	if function == "" {
		return "the kernel"
	}
	return "kernel function " + function
}

func stateIn(w *model.Work, when model.Interval) string {
	s := stateOf(w, when)
	said := inWords(s)
	if said != "" && float64(s.Time) < enough*float64(when.End-when.Start) {
		said += " for " + text.Round(time.Duration(s.Time)).String()
	}
	return said
}

func remedyFor(who *event.Actor, name string, s *model.Spent) string {
	if s == nil || who == nil {
		return ""
	}
	switch s.State {
	case event.AgentStopped, event.AgentFrozen:
		return goOn(who.PID, name, s.State, s.By)
	case event.AgentRunning:
		return fmt.Sprintf("raise the CPU limit of %s"+ifThrottled+"; otherwise run perf record -p %d to find the hot code", name, who.PID)
	case event.AgentUninterruptible:
		return fmt.Sprintf("%s; /proc/%d/stack shows where it waits", stuckIn(s.Channel, name), who.PID)
	}
	return ""
}

func stuckIn(function, name string) string {
	for _, known := range []struct {
		parts []string
		says  string
	}{
		{[]string{"nfs", "rpc_", "cifs", "smb"}, "start the server of the network file system that %s waits for, or unmount that file system (umount -f -l)"},
		{[]string{"fuse", "request_wait_answer"}, "restart the program that serves the FUSE file system that %s waits for, or unmount that file system (fusermount -u)"},
		{[]string{"io_schedule", "blk", "jbd2", "ext4", "xfs", "btrfs", "folio_wait", "wait_on_page", "writeback", "fsync"}, "move the files of %s to a faster disk, or stop other writers (iostat -x 1, iotop)"},
		{[]string{"rtnl"}, "start and delete fewer pods at once: %s waits for the kernel's lock on network configuration (rtnl)"},
		{[]string{"percpu_rwsem", "sb_start"}, "thaw the file system that %s waits for (fsfreeze -u)"},
		{[]string{"synchronize_rcu", "rcu_barrier", "cleanup_net"}, "start and delete fewer pods at once: %s waits for the kernel to remove interfaces or namespaces"},
	} {
		if slices.ContainsFunc(known.parts, func(part string) bool { return strings.Contains(function, part) }) {
			return fmt.Sprintf(known.says, name)
		}
	}
	return fmt.Sprintf("replace the disk, network file system or device that dmesg reports as failing, because %s waits for it in the kernel", name)
}
