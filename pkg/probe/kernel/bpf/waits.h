/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* System calls that usually wait when they last. A single wait of a millisecond or more is
 * reported; work of that duration, and several shorter waits, are not. */
#pragma once

#define TIMED_OUT 110 /* ETIMEDOUT */

/* How a call gets its timeout: timeout_of has one of these and the argument's index. */
#define IN_MILLISECONDS 0x10
#define AS_TIMESPEC 0x20
#define AS_TIMESPEC_OF_FUTEX 0x30
#define AS_TIMEVAL 0x40
#define AS_TIMESPEC_OF_CLOCK 0x50
#define AS_BEFORE 0x60 /* it continues the previous call */
#define PLACE 0xf
#define FUTEX_WAIT 0        /* include/uapi/linux/futex.h: relative */
#define FUTEX_WAIT_BITSET 9 /* … absolute */
#define FUTEX_PRIVATE_FLAG 128
#define TIMER_ABSTIME 1 /* of clock_nanosleep (include/uapi/linux/time.h) */

/* The end of a timeout that begins now; before is that of the previous call. It reads the
 * thread's memory, so the thread must be current, as it still is at sched_switch. */
static __noinline __u64 over_by(struct pt_regs *regs, __u32 nr, __u64 now, __u64 before)
{
	__u64 arg, spec[2] = {}, command;
	__u8 how;

	HIDE(nr); /* see class_at */
	how = timeout_of[nr & (NR_MAX - 1)];
	if (!how)
		return 0;
	if (how == AS_BEFORE)
		return before;
	arg = arg_in(regs, TELLS_REGS, how & PLACE);
	how &= ~PLACE;
	if (how == IN_MILLISECONDS)
		return (int)arg < 0 ? 0 : now + (int)arg * 1000000ULL;
	if (!arg || bpf_probe_read_user(spec, sizeof(spec), (void *)arg))
		return 0;
	if (how == AS_TIMEVAL)
		return now + spec[0] * 1000000000ULL + spec[1] * 1000;
	if (how == AS_TIMESPEC || (how == AS_TIMESPEC_OF_CLOCK && !(arg_in(regs, TELLS_REGS, 1) & TIMER_ABSTIME)))
		return now + spec[0] * 1000000000ULL + spec[1];
	if (how == AS_TIMESPEC_OF_CLOCK)
		return 0;
	command = arg_in(regs, TELLS_REGS, 1) & ~FUTEX_PRIVATE_FLAG;
	if (command == FUTEX_WAIT)
		return now + spec[0] * 1000000000ULL + spec[1];
	if (command == FUTEX_WAIT_BITSET) /* monotonic; the wall clock is unknown here */
		return spec[0] * 1000000000ULL + spec[1];
	return 0;
}

/* The thread's entry, as long as it lives: adding it at each wait would be most of the cost. */
static __always_inline struct call *place_of(struct task_struct *task)
{
	__u32 tid = task->pid;
	struct call *known = bpf_map_lookup_elem(&calls, &tid), none = {.tgid = task->tgid};

	if (known && known->tgid == none.tgid)
		return known;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_EXITING)) /* otherwise it would never be removed */
		return 0;
	begin_thread(&none, tid);
	return bpf_map_lookup_elem(&calls, &tid);
}

/* Counts of waits by the last bits of threads' numbers, as in slots. */
__u32 waiting[SLOTS] SEC(".data.waiting");

static __always_inline void begins_wait(struct task_struct *task, struct call *c, __u64 now)
{
	__sync_fetch_and_add(&waiting[task->pid & (SLOTS - 1)], 1);
	c->since = now;
}

/* Whether a thread begins a nap of Go's runtime: four of five waits in a burst of pods. */
static __always_inline bool naps(struct task_struct *task, struct pt_regs *regs, __u32 nr, __u8 class)
{
	__u64 length = class == CLASS_SLEEP && task->pid != task->tgid ? over_by(regs, nr, 0, 0) : 0;

	return length && length < SYSMON_MAX;
}

/* A thread that came back has no since. */
static __always_inline void leaves(struct task_struct *task)
{
	struct pt_regs *regs = regs_of(task);
	__u32 nr = number_in(regs, TELLS_REGS);
	__u8 class = class_at(nr);
	struct call *c;
	__u64 now;

	if (class == CLASS_NEVER || naps(task, regs, nr, class))
		return;
	hold();
	c = place_of(task);
	if (c) {
		now = bpf_ktime_get_ns();
		c->until = over_by(regs, nr, now, c->until);
		begins_wait(task, c, now);
	}
	let_go();
}

/* Whether the call's end will report its duration. */
static __always_inline bool told_later(const struct call *known, const struct call *c)
{
	return known->start && known->nr == c->nr;
}

/* Result of a wait: whether it timed out. */
static __always_inline __s64 outcome(const struct call *c, __u64 now)
{
	bool over = c->until && now >= c->until;

	if (c->class == CLASS_FUTEX)
		return over ? -TIMED_OUT : 0;
	return c->class == CLASS_POLL && !over;
}

static __always_inline void comes_back(struct task_struct *task)
{
	__u32 tid = task->pid, tgid = task->tgid;
	struct call *known = bpf_map_lookup_elem(&calls, &tid), c = {};
	struct call_event *e;
	struct process *p;
	__u64 now;

	if (!known || !known->since)
		return;
	__sync_fetch_and_add(&waiting[tid & (SLOTS - 1)], -1);
	c.start = known->since;
	known->since = 0;
	now = bpf_ktime_get_ns();
	if (now - c.start < LASTED || known->tgid != tgid || c.start < task->start_time) /* or an earlier thread of that number waited */
		return;
	if (!call_of(task, &c) || told_later(known, &c) || compat(task))
		return;
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (!p || (p->agent && idle(c.class)))
		return;
	c.until = known->until;
	if (c.class == CLASS_SLEEP && tid != tgid && !c.until && now < c.start + SYSMON_MAX) /* a nap, as well */
		return;
	e = record_in(OF_SWITCH, p, c.class, &c, outcome(&c, now));
	if (!e)
		return;
	e->thread = tid;
	if (c.class == CLASS_FLOCK || (c.class == CLASS_FCNTL && locks(&c))) {
		e->args[3] = 0; /* as of exit_lock: it gets the lock */
		append_path(e, file_of(task, c.args[0]));
	}
	send_record(e, p, false);
}

#define TASK_INTERRUPTIBLE 1 /* include/linux/sched.h */
#define TASK_UNINTERRUPTIBLE 2
#define PF_FROZEN 0x10000       /* freezer of cgroup v1, until 6.0; since then a state: TASK_FROZEN */
#define TRAP_FREEZE (1UL << 23) /* JOBCTL_TRAP_FREEZE (include/linux/sched/jobctl.h): cgroup v2; 5.2 */

/* State of a task; 0 if it is runnable. */
static __always_inline unsigned int state_of(struct task_struct *task)
{
	struct task_struct___14 *later = (void *)task;
	struct task_struct___13 *before = (void *)task;

	return bpf_core_field_exists(later->__state) ? later->__state : before->state;
}

/* Whether a task waits in its system call. Signals, tracers and freezers stop
 * it on its way out of a call, whose number is still in its registers: that is no wait. */
static __always_inline bool waits(struct task_struct *task)
{
	struct task_struct___jobctl *t = (void *)task;
	unsigned int state = state_of(task);

	if (!(state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)) || task->flags & PF_FROZEN)
		return false;
	return state & TASK_UNINTERRUPTIBLE || !bpf_core_field_exists(t->jobctl) || !(t->jobctl & TRAP_FREEZE);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	/* Usually neither, and cheap for all. */
	if (!preempt && may_be_tracked(prev->tgid) && waits(prev))
		leaves(prev);
	if (waiting[next->pid & (SLOTS - 1)]) {
		hold();
		comes_back(next);
		let_go();
	}
	return 0;
}
