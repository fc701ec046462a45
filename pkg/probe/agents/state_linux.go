package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// maxThreads is how many threads of one process a sample looks at: of a server in Go it is all of them,
// some 30, of which each costs 10 µs.
const maxThreads = 128

// idleIn are the kernel's functions in which threads wait for work, or for other threads of their own, by
// their beginnings: names differ from one version to the next (futex_wait_queue_me, futex_do_wait). Reading
// from a socket is one of them: many servers have a thread for each client. What is asked over a
// socket, and waited for, is an Exchange.
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

// anyCallIn are where every system call is: no more is known of a thread than that it is in one, as after a
// signal (restart_syscall).
var anyCallIn = []string{"do_syscall_64", "entry_", "invoke_syscall", "el0_", "do_el0_svc"}

// frozenIn are where a freezer holds threads: that of cgroup v2, in which they sleep (by the compiler, or by
// name), and the older one's. Since 6.1 that leaves them where they sleep, and they are in D there, in which
// nobody else is in a function of idleIn.
var frozenIn = []string{"do_freezer_trap", "get_signal", "__refrigerator", "refrigerator"}

// StateOf says what a process does now, by all of its threads, and the kernel's function in which it waits;
// empty where there is no such process.
func StateOf(pid int) (state event.AgentState, channel string) {
	threads, _ := procfs.Threads(pid, maxThreads)
	return stateOf(threads)
}

// stateOf says what a process does, by all of its threads: the first state of event.AgentStopped … that one
// of them is in, and the function in which it is.
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

// HaltOf says whether a process is stopped or frozen, by its first thread, and by what; empty if it is not. It takes
// some 20 µs of one that is not.
func HaltOf(pid int) (state event.AgentState, by string) {
	first, _ := procfs.Threads(pid, 1)
	if state, _ = stateOf(first); !state.Halted() {
		return "", ""
	}
	return state, haltedBy(pid, state)
}

// haltedBy says what has stopped or frozen a process; empty if that is not known.
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

// states are in the order in which one goes before another.
var states = []event.AgentState{
	event.AgentStopped, event.AgentFrozen, event.AgentUninterruptible, event.AgentRunning, event.AgentWaiting, event.AgentIdle,
}

// rankOf is the place of what a thread does among states; behind all of them if it has ended.
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
	return 5 // or where it waits is not told
}

// bare is a function's name without what the entry of a system call has in front.
func bare(function string) string {
	for _, entry := range []string{"__x64_", "__arm64_", "__se_", "__do_"} {
		function = strings.TrimPrefix(function, entry)
	}
	return function
}

// startsIn reports whether a function's name begins with one of these.
func startsIn(all []string, name string) bool {
	return slices.ContainsFunc(all, func(one string) bool { return strings.HasPrefix(name, one) })
}

// sample is what a process does now; nothing if it is gone, whoever has its number by now.
func sample(key kernel.Key, name string) *event.Agent {
	s := &event.Agent{Process: kernel.ProcessOf(key), PID: key.Pid, Name: name}
	if key.Pid == 0 { // it has no number here
		return s
	}
	state, channel := StateOf(int(key.Pid))
	if stat, err := procfs.StatOf(int(key.Pid)); err == nil && stat.BeganAt(int64(key.Start)) {
		s.State, s.Channel, s.CPU, s.By = state, channel, stat.CPU, haltedBy(int(key.Pid), state)
	}
	return s
}
