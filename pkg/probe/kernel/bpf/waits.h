/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * System calls that last, by what they mostly do then: wait. Of one that waits a millisecond or more at once
 * the wait is told; of one that works as long, or waits many times for less, nothing is.
 */
#pragma once

#define TIMED_OUT 110 /* ETIMEDOUT */

/* How a call is told for how long to wait at most: timeout_of has one of these and the argument's place. */
#define IN_MILLISECONDS 0x10
#define AS_TIMESPEC 0x20
#define AS_TIMESPEC_OF_FUTEX 0x30
#define AS_TIMEVAL 0x40
#define ALWAYS 0x50    /* it ends by itself */
#define AS_BEFORE 0x60 /* it goes on with the call before */
#define PLACE 0xf
#define FUTEX_WAIT 0        /* include/uapi/linux/futex.h: for so long */
#define FUTEX_WAIT_BITSET 9 /* … until then */
#define FUTEX_PRIVATE_FLAG 128

/* When a call's time will be over, which begins to wait now; before is what that was of the last one. Its own memory is
 * read, so the thread must be the current one, which at sched_switch it still is. */
static __always_inline __u64 over_by(struct pt_regs *regs, __u32 nr, __u64 now, __u64 before)
{
	__u64 arg, spec[2] = {}, command;
	__u8 how;

	HIDE(nr); /* see class_at */
	how = timeout_of[nr & (NR_MAX - 1)];
	if (!how)
		return 0;
	if (how == ALWAYS)
		return now;
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
	if (how == AS_TIMESPEC)
		return now + spec[0] * 1000000000ULL + spec[1];
	command = arg_in(regs, TELLS_REGS, 1) & ~FUTEX_PRIVATE_FLAG;
	if (command == FUTEX_WAIT)
		return now + spec[0] * 1000000000ULL + spec[1];
	if (command == FUTEX_WAIT_BITSET) /* of the monotonic clock; that of the wall is not known here */
		return spec[0] * 1000000000ULL + spec[1];
	return 0;
}

/* The thread's place in the table, which it has as long as it lives: to put it in each time would be most of what this takes. */
static __always_inline struct call *place_of(struct task_struct *task)
{
	__u32 tid = task->pid;
	struct call *known = bpf_map_lookup_elem(&calls, &tid), none = {.tgid = task->tgid};

	if (known && known->tgid == none.tgid)
		return known;
	if (task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_EXITING)) /* or nobody would take it away */
		return 0;
	begin_thread(&none, tid);
	return bpf_map_lookup_elem(&calls, &tid);
}

static __always_inline void leaves(struct task_struct *task)
{
	struct call *c = place_of(task);
	struct pt_regs *regs;
	__u64 now;
	__u32 nr;

	if (!c)
		return;
	c->since = 0;
	regs = regs_of(task);
	nr = number_in(regs, TELLS_REGS);
	if (class_at(nr) == CLASS_NEVER)
		return;
	now = bpf_ktime_get_ns();
	c->until = over_by(regs, nr, now, c->until);
	c->since = now;
}

/* Whether the call's end will tell how long it took. */
static __always_inline bool told_later(const struct call *known, const struct call *c)
{
	return known->start && known->nr == c->nr;
}

/* What a wait came to, as far as it matters: whether its time was over. */
static __always_inline __s64 outcome(const struct call *c, __u64 until, __u64 now)
{
	bool over = until && now >= until;

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
	if (c.class == CLASS_SLEEP && now - c.start < SYSMON_MAX && tid != tgid)
		return;
	e = record_in(OF_SWITCH, p, c.class, &c, outcome(&c, known->until, now));
	if (!e)
		return;
	e->thread = tid;
	send_record(e, p, false);
}

#define TASK_INTERRUPTIBLE 1 /* include/linux/sched.h */
#define TASK_UNINTERRUPTIBLE 2
#define PF_FROZEN 0x10000       /* by the freezer of cgroup v1, until 6.0; since then it is a state: TASK_FROZEN */
#define TRAP_FREEZE (1UL << 23) /* JOBCTL_TRAP_FREEZE of include/linux/sched/jobctl.h: by that of cgroup v2; 5.2 */

/* What a task that the CPU goes on from does; 0 if it could go on itself. */
static __always_inline unsigned int state_of(struct task_struct *task)
{
	struct task_struct___14 *later = (void *)task;
	struct task_struct___13 *before = (void *)task;

	return bpf_core_field_exists(later->__state) ? later->__state : before->state;
}

/* Whether a task that the CPU goes on from waits in the system call it is in. A signal, a tracer and a freezer stop
 * it on its way out of one, whose number is still in its registers: that is no wait of the call. */
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
	bool goes_on = preempt || !may_be_tracked(prev->tgid), comes = may_be_tracked(next->tgid);

	if (goes_on && !comes) /* mostly: nobody else pays for more */
		return 0;
	hold();
	if (!goes_on && waits(prev))
		leaves(prev);
	if (comes)
		comes_back(next);
	let_go();
	return 0;
}
