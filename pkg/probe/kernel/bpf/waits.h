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

static __always_inline __u64 fifth_of(struct pt_regs *regs)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;

	return bpf_core_field_exists(x86->orig_ax) ? x86->r8 : BPF_CORE_READ(arm64, regs[4]);
}

/* When a call's time will be over, which begins to wait now. Its own memory is read, so the thread must be the current one,
 * which at sched_switch it still is. */
static __always_inline __u64 over_by(struct task_struct *task, const struct call *c, __u64 now)
{
	__u8 how = timeout_of[c->nr & (NR_MAX - 1)], place = how & PLACE;
	__u64 arg = place < 4 ? c->args[place & 3] : fifth_of((void *)bpf_task_pt_regs(task)), spec[2] = {};

	if (!how)
		return 0;
	if ((how & ~PLACE) == IN_MILLISECONDS)
		return (int)arg < 0 ? 0 : now + (int)arg * 1000000ULL;
	if ((how & ~PLACE) == AS_TIMESPEC_OF_FUTEX && (c->args[1] & FUTEX_COMMAND) != FUTEX_WAIT)
		return 0;
	if (!arg || bpf_probe_read_user(spec, sizeof(spec), (void *)arg))
		return 0;
	return now + spec[0] * 1000000000ULL + spec[1];
}

static __always_inline void leaves(struct task_struct *task, unsigned int state)
{
	__u32 tid = task->pid, tgid = task->tgid;
	struct off off = {};
	struct call c = {};

	if (state & TASK_DEAD) {
		bpf_map_delete_elem(&offs, &tid);
		return;
	}
	if (!bpf_map_lookup_elem(&processes, &tgid) || !call_of(task, &c))
		return;
	off.since = bpf_ktime_get_ns();
	off.until = over_by(task, &c, off.since);
	bpf_map_update_elem(&offs, &tid, &off, BPF_ANY);
}

/* Whether the end of the function that the call is in will tell how long it took. */
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
	__u64 now = bpf_ktime_get_ns();
	struct call_event *e;
	struct call c = {};
	struct process *p;

	if (!known || !known->since)
		return;
	off = *known;
	known->since = 0;
	if (now - off.since < LASTED || !call_of(task, &c) || told_later(tid, &c) || compat(task))
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

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state)
{
	hold();
	if (!preempt && state && may_be_tracked(prev->tgid))
		leaves(prev, state);
	if (may_be_tracked(next->tgid))
		comes_back(next);
	let_go();
	return 0;
}
