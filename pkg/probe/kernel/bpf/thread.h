/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* A thread's system call, from start to end. */
#pragma once

#define PF_EXITING 0x4      /* include/linux/sched.h */
#define PF_IO_WORKER 0x10   /* makes no system calls of its own */
#define PF_KTHREAD 0x200000 /* … and has no user registers */

/* Whether a helper returns a task's registers, typed: since 5.15. */
#define TELLS_REGS (!regs_at)

/* The user registers of a task. */
static __always_inline struct pt_regs *regs_of(struct task_struct *task)
{
	struct task_struct___stack *t = (void *)task;

	if (TELLS_REGS)
		return (void *)bpf_task_pt_regs(task);
	return BPF_CORE_READ(t, stack) + regs_at;
}

/* typed: the verifier knows the type of regs, so a cheap load works. */
#define REGISTER(regs, typed, field) ((typed) ? (regs)->field : BPF_CORE_READ(regs, field))

static __always_inline __u32 number_in(struct pt_regs *regs, bool typed)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;

	if (bpf_core_field_exists(x86->orig_ax))
		return REGISTER(x86, typed, orig_ax);
	return REGISTER(arm64, typed, syscallno);
}

/* The class of a call's number; CLASS_NEVER for an invalid number. */
static __always_inline __u8 class_at(__u32 nr)
{
	if (nr >= NR_MAX)
		return CLASS_NEVER;
	HIDE(nr); /* otherwise the compiler drops the mask, which the verifier needs */
	return class_of[nr & (NR_MAX - 1)];
}

/* An argument of a system call, even after its end. */
static __always_inline __u64 arg_in(struct pt_regs *regs, bool typed, __u8 place)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;
	bool is_x86 = bpf_core_field_exists(x86->orig_ax);

	switch (place) {
	case 0:
		return is_x86 ? REGISTER(x86, typed, di) : BPF_CORE_READ(arm64, orig_x0);
	case 1:
		return is_x86 ? REGISTER(x86, typed, si) : BPF_CORE_READ(arm64, regs[1]);
	case 2:
		return is_x86 ? REGISTER(x86, typed, dx) : BPF_CORE_READ(arm64, regs[2]);
	case 3:
		return is_x86 ? REGISTER(x86, typed, r10) : BPF_CORE_READ(arm64, regs[3]);
	}
	return is_x86 ? REGISTER(x86, typed, r8) : BPF_CORE_READ(arm64, regs[4]);
}

static __always_inline void read_args(struct pt_regs *regs, bool typed, __u64 args[4])
{
	args[0] = arg_in(regs, typed, 0);
	args[1] = arg_in(regs, typed, 1);
	args[2] = arg_in(regs, typed, 2);
	args[3] = arg_in(regs, typed, 3);
}

/* 32-bit programs have other system call numbers (TS_COMPAT of x86). */
static __always_inline bool compat(struct task_struct *task)
{
	struct task_struct___x86 *x86 = (void *)task;

	return bpf_core_field_exists(x86->thread_info.status) && LOAD(task, task_struct___x86, thread_info.status) & 2;
}

/* Adds a thread at its first call, unless its root's share is full. */
static __always_inline void begin_thread(const struct call *c, __u32 tid)
{
	struct process *p = bpf_map_lookup_elem(&processes, &c->tgid);
	struct account *a;

	if (!p)
		return;
	a = bpf_map_lookup_elem(&accounts, &p->root);
	if ((a && a->threads >= root_share) || bpf_map_update_elem(&calls, &tid, c, BPF_ANY)) {
		lose(LOST_CALLS, &p->root);
		return;
	}
	__sync_fetch_and_add(&p->threads, 1);
	if (a)
		__sync_fetch_and_add(&a->threads, 1);
}

/* What a server's threads do most of the time does not matter. */
static __always_inline bool idle(__u8 class)
{
	switch (class) {
	case CLASS_SLEEP:
	case CLASS_FUTEX:
	case CLASS_POLL:
	case CLASS_WAIT:
	case CLASS_RECVFROM:
	case CLASS_RECVMSG:
	case CLASS_READ:
	case CLASS_READV:
	case CLASS_ACCEPT:
		return true;
	}
	return false;
}

/* Text arguments of a slow or failed call are reported. */
static __always_inline __u8 texts(const struct call *c)
{
	return texts_of[c->nr & (NR_MAX - 1)];
}

static __always_inline void lasted(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;

	if (!c->start || (bpf_ktime_get_ns() - c->start < LASTED && (ret >= 0 || !texts(c))))
		return;
	if (p->agent && idle(c->class))
		return;
	e = record(task, p, c->class, c, ret);
	if (!e)
		return;
	if (texts(c))
		append_texts(e, c, texts(c));
	send_record(e, p, false);
}

/* A task's system call; false if it is in none, or in one that does not matter. */
static __always_inline bool call_of(struct task_struct *task, struct call *c)
{
	struct pt_regs *regs = regs_of(task);
	__u32 nr = number_in(regs, TELLS_REGS);

	c->tgid = task->tgid;
	c->nr = nr;
	c->class = class_at(nr);
	if (c->class == CLASS_NEVER || task->flags & (PF_KTHREAD | PF_IO_WORKER))
		return false;
	read_args(regs, TELLS_REGS, c->args);
	return true;
}

/* Cheap and first, because every process pays for it. TALKS and more: it may talk. */
static __always_inline __u32 may_be_ours(void)
{
	return may_be_tracked(bpf_get_current_pid_tgid() >> 32);
}

/* Stores a call until its end. False: there is no room. */
static __always_inline bool keep(const struct call *c)
{
	__u32 tid = bpf_get_current_pid_tgid();
	struct call *known = bpf_map_lookup_elem(&calls, &tid);

	if (known && known->tgid == c->tgid) {
		*known = *c;
		return true;
	}
	begin_thread(c, tid);
	return bpf_map_lookup_elem(&calls, &tid);
}
