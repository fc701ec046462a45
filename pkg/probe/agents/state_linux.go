package agents

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// maxThreads bounds a sample, at 10 µs per thread. A Go server has about 30.
const maxThreads = 128

// idleIn are prefixes of functions that wait for work or own threads: names vary (futex_wait_queue_me,
// futex_do_wait). Reading a socket is idle: awaited answers are Exchanges.
var idleIn = []string{
	"futex_", "__futex_", "do_futex",
	"ep_poll", "do_epoll_", "poll_schedule_timeout", "do_poll", "do_sys_poll", "do_select", "core_sys_select", "do_pselect",
	"hrtimer_nanosleep", "do_nanosleep", "common_nsleep", "clock_nanosleep",
	"do_wait", "kernel_wait4", "kernel_waitid",
	"pipe_read", "anon_pipe_read", "pipe_wait_readable", "wait_for_partner", "fifo_open",
	"inet_csk_accept", "inet_csk_wait_for_connect", "unix_accept", "unix_wait_for_peer_accept",
	"wait_woken", "sk_wait_data", "tcp_recvmsg", "unix_stream_read_generic", "unix_stream_data_wait",
	"__skb_wait_for_more_packets", "__skb_recv_", "skb_recv_", "netlink_recvmsg", "packet_recvmsg", "vsock_accept",
	"sigsuspend", "do_sigtimedwait", "do_rt_sigtimedwait", "signalfd_", "sys_pause", "sys_rt_sigsuspend", "sys_rt_sigtimedwait",
	"eventfd_read", "timerfd_read", "inotify_read", "fanotify_read", "do_msgrcv", "do_semtimedop", "wq_sleep", "n_tty_read",
	"io_cqring_wait", "io_wq_worker", "io_sq_thread", "read_events", "do_io_getevents", "do_syslog", "devkmsg_read",
	"ring_buffer_wait", "perf_read", "fuse_dev_do_read", "kthread",
}

// anyCallIn are entries of all system calls.
var anyCallIn = []string{"do_syscall_64", "entry_", "invoke_syscall", "el0_", "do_el0_svc"}

// frozenIn are functions in which cgroup v2 and v1 freeze. Since 6.1 v1 freezes threads where they sleep, in state D.
var frozenIn = []string{"do_freezer_trap", "get_signal", "__refrigerator", "refrigerator"}

// StateOf returns a process's state, from all threads, and the kernel function in which it waits; may be empty.
func StateOf(pid int) (state event.AgentState, channel string) {
	threads, _ := procfs.Threads(pid, maxThreads)
	return stateOf(threads)
}

func stateOf(threads []procfs.Thread) (state event.AgentState, channel string) {
	best := len(states)
	for _, t := range threads {
		if rank := rankOf(t); rank < best {
			best, channel = rank, t.Channel
		}
	}
	if best == len(states) {
		return "", ""
	}
	if state = states[best]; state != event.AgentUninterruptible && state != event.AgentWaiting {
		channel = ""
	}
	return state, channel
}

// HaltOf reports whether a process is stopped or frozen, by its first thread, and by what; else empty.
func HaltOf(pid int) (state event.AgentState, by string) {
	return HaltIn(pid, procfs.FirstThread(pid))
}

// HaltIn is HaltOf of a read thread.
func HaltIn(pid int, first procfs.Thread) (state event.AgentState, by string) {
	if state, _ = stateOf([]procfs.Thread{first}); !state.Halted() {
		return "", ""
	}
	return state, haltedBy(pid, state)
}

func haltedBy(pid int, state event.AgentState) string {
	switch state {
	case event.AgentStopped:
		if tracer := procfs.TracerOf(pid); tracer != 0 {
			return fmt.Sprintf("%s (pid %d)", cmp.Or(Program(uint32(tracer)), "a debugger"), tracer)
		}
	case event.AgentFrozen:
		return text.Clean(procfs.FrozenBy(pid), text.Bound)
	}
	return ""
}

var states = []event.AgentState{
	event.AgentStopped, event.AgentFrozen, event.AgentUninterruptible, event.AgentRunning, event.AgentWaiting, event.AgentIdle,
}

// rankOf is past the end for an ended thread.
func rankOf(t procfs.Thread) int {
	switch {
	case t.State == "T" || t.State == "t":
		return 0
	case (t.State == "S" || t.State == "D") && slices.Contains(frozenIn, t.Channel), t.State == "D" && startsIn(idleIn, t.Channel):
		return 1
	case t.State == "D":
		return 2
	case t.State == "R":
		return 3
	case t.State == "Z" || t.State == "X" || t.State == "":
		return len(states)
	case t.Channel != "" && !startsIn(idleIn, bare(t.Channel)) && !startsIn(anyCallIn, t.Channel):
		return 4
	}
	return 5 // or its function is hidden
}

func bare(function string) string {
	for _, entry := range []string{"__x64_", "__arm64_", "__se_", "__do_"} {
		function = strings.TrimPrefix(function, entry)
	}
	return function
}

func startsIn(all []string, name string) bool {
	return slices.ContainsFunc(all, func(one string) bool { return strings.HasPrefix(name, one) })
}

// sample returns nil if the process is gone, even if its PID was reused.
func sample(key kernel.Key, name string) *event.Agent {
	s := &event.Agent{Process: kernel.ProcessOf(key), PID: key.Pid, Name: name}
	if key.Pid == 0 {
		return s
	}
	state, channel := StateOf(int(key.Pid))
	if stat, err := procfs.StatOf(int(key.Pid)); err == nil && stat.BeganAt(int64(key.Start)) {
		s.State, s.Channel, s.CPU, s.By = state, channel, stat.CPU, haltedBy(int(key.Pid), state)
	}
	return s
}

// matches compares a process's name with globs, cut to 15 bytes as the kernel's names are.
func matches(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if !strings.ContainsAny(pattern, `*?[\`) {
			pattern = pattern[:min(len(pattern), 15)]
		}
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}

// Program returns the kernel's name of a program; may be empty.
func Program(pid uint32) string {
	s, err := procfs.StatOf(int(pid))
	if err != nil {
		return ""
	}
	return text.Clean(s.Name, 16)
}

func (a *Agents) knows(pid uint32) bool {
	for _, known := range a.known {
		if known.key.Pid == pid {
			return true
		}
	}
	return false
}

type memory struct {
	group  procfs.MemoryGroup
	before uint64 // kills in the group before it was followed
}

func memoryOf(pid uint32) memory {
	group := procfs.MemoryGroupOf(int(pid))
	return memory{group, group.Killed()}
}

// tellKilled reports an OOM kill of a followed agent: SIGKILL, and one more kill in its cgroup.
func (a *Agents) tellKilled(x *event.Exit, key kernel.Key, name string, m memory) {
	if x.Signal == unix.SignalName(unix.SIGKILL) && m.group.Killed() > m.before {
		a.kernel.Tell(&event.Agent{Process: x.Process, PID: key.Pid, Name: name, Over: true, Killed: "OOM"})
	}
}
