/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * System calls that last, by what they mostly do then: wait. Of one that waits a millisecond or more at once
 * the wait is told; of one that works as long, or waits many times for less, nothing is.
 */
#pragma once

#define TASK_DEAD 0x80 /* include/linux/sched.h */
#define TIMED_OUT 110  /* ETIMEDOUT */

/* How a call is told for how long to wait at most: timeout_of has one of these and the argument's place. */
#define IN_MILLISECONDS 0x10
#define AS_TIMESPEC 0x20
#define AS_TIMESPEC_OF_FUTEX 0x30
#define PLACE 0xf
#define FUTEX_WAIT 0
#define FUTEX_COMMAND 0x7f /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */

struct off {
	__u64 since;
	__u64 until; /* when the wait ends in any case; 0: never, or not known */
};

/* Since when threads wait; [limits] processes times four. One that there is no room for has its wait not told. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct off);
} offs SEC(".maps");

/* When a call's time will be over, which begins to wait now. Its own memory is read, so the thread must be the current one,
 * which at sched_switch it still is. */
static __always_inline __u64 over_by(struct pt_regs *regs, __u32 nr, __u64 now)
{
	__u64 arg, spec[2] = {};
	__u8 how;

	HIDE(nr); /* see class_at */
	how = timeout_of[nr & (NR_MAX - 1)];
	if (!how)
		return 0;
	arg = arg_in(regs, TELLS_REGS, how & PLACE);
	if ((how & ~PLACE) == IN_MILLISECONDS)
		return (int)arg < 0 ? 0 : now + (int)arg * 1000000ULL;
	if ((how & ~PLACE) == AS_TIMESPEC_OF_FUTEX && (arg_in(regs, TELLS_REGS, 1) & FUTEX_COMMAND) != FUTEX_WAIT)
		return 0;
	if (!arg || bpf_probe_read_user(spec, sizeof(spec), (void *)arg))
		return 0;
	return now + spec[0] * 1000000000ULL + spec[1];
}

/* The thread has its place as long as it lives: to put it in each time would be most of what this takes. */
static __always_inline void leaves(struct task_struct *task)
{
	__u32 tid = task->pid, tgid = task->tgid, nr;
	struct off *known = bpf_map_lookup_elem(&offs, &tid), off = {};
	struct pt_regs *regs;

	if (!known && !bpf_map_lookup_elem(&processes, &tgid))
		return;
	regs = regs_of(task);
	nr = number_in(regs, TELLS_REGS);
	if (class_at(nr) != CLASS_NEVER) {
		off.since = bpf_ktime_get_ns();
		off.until = over_by(regs, nr, off.since);
	}
	if (known)
		*known = off;
	else if (off.since)
		bpf_map_update_elem(&offs, &tid, &off, BPF_ANY);
}

/* Whether the call's end will tell how long it took. */
static __always_inline bool told_later(__u32 tid, const struct call *c)
{
	struct call *known = bpf_map_lookup_elem(&calls, &tid);

	return known && known->start && known->tgid == c->tgid && known->nr == c->nr;
}

/* What a wait came to, as far as it matters: whether its time was over. */
static __always_inline __s64 outcome(const struct call *c, const struct off *off, __u64 now)
{
	bool over = off->until && now >= off->until;

	if (c->class == CLASS_FUTEX)
		return over ? -TIMED_OUT : 0;
	return c->class == CLASS_POLL && !over;
}

static __always_inline void comes_back(struct task_struct *task)
{
	__u32 tid = task->pid, tgid = task->tgid;
	struct off *known = bpf_map_lookup_elem(&offs, &tid), off;
	struct call_event *e;
	struct call c = {};
	struct process *p;
	__u64 now;

	if (!known || !known->since)
		return;
	off = *known;
	known->since = 0;
	now = bpf_ktime_get_ns();
	if (now - off.since < LASTED || !call_of(task, &c) || told_later(tid, &c) || compat(task))
		return;
	if (off.since < task->start_time) /* an earlier thread of that number left it behind */
		return;
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (!p || (p->agent && idle(c.class)))
		return;
	if (c.class == CLASS_SLEEP && now - off.since < SYSMON_MAX && tid != tgid)
		return;
	c.start = off.since;
	e = record_in(OF_SWITCH, p, c.class, &c, outcome(&c, &off, now));
	if (!e)
		return;
	e->thread = tid;
	send_record(e, p, false);
}

/* What a task that the CPU goes on from does; 0 if it could go on itself. */
static __always_inline unsigned int state_of(struct task_struct *task)
{
	struct task_struct___14 *later = (void *)task;
	struct task_struct___13 *before = (void *)task;

	return bpf_core_field_exists(later->__state) ? later->__state : before->state;
}

static __always_inline void goes(struct task_struct *task)
{
	unsigned int state = state_of(task);
	__u32 tid = task->pid;

	if (state & TASK_DEAD)
		bpf_map_delete_elem(&offs, &tid);
	else if (state)
		leaves(task);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	bool goes_on = preempt || !may_be_tracked(prev->tgid), comes = may_be_tracked(next->tgid);

	if (goes_on && !comes) /* mostly: nobody else pays for more */
		return 0;
	hold();
	if (!goes_on)
		goes(prev);
	if (comes)
		comes_back(next);
	let_go();
	return 0;
}
