/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The system call that a thread is in, from its beginning to its end. */
#pragma once

static __always_inline void read_args(struct pt_regs *regs, __u64 args[4])
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;

	if (bpf_core_field_exists(x86->orig_ax)) {
		args[0] = x86->di;
		args[1] = x86->si;
		args[2] = x86->dx;
		args[3] = x86->r10;
	} else {
		args[0] = BPF_CORE_READ(arm64, regs[0]);
		args[1] = BPF_CORE_READ(arm64, regs[1]);
		args[2] = BPF_CORE_READ(arm64, regs[2]);
		args[3] = BPF_CORE_READ(arm64, regs[3]);
	}
}

/* 32-bit programs number their system calls differently (TS_COMPAT of x86). */
static __always_inline bool compat(struct task_struct *task)
{
	struct task_struct___x86 *x86 = (void *)task;

	return bpf_core_field_exists(x86->thread_info.status) && BPF_CORE_READ(x86, thread_info.status) & 2;
}

/* A thread's first call: it has a place from now on, unless its root has its share. */
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

/* What the threads of a server do most of the time says nothing. */
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

/* Texts of a call that lasted, or failed, are told. */
static __always_inline __u8 texts(const struct call *c)
{
	return texts_of[c->nr & (NR_MAX - 1)];
}

static __always_inline void lasted(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	__u64 took = bpf_ktime_get_ns() - c->start;
	struct call_event *e;

	if (took < LASTED && (ret >= 0 || !texts(c)))
		return;
	if (p->agent && idle(c->class))
		return;
	if (c->class == CLASS_SLEEP && took < SYSMON_MAX && (__u32)bpf_get_current_pid_tgid() != p->self.tgid)
		return;
	e = record(task, p, c->class, c, ret);
	if (!e)
		return;
	if (texts(c))
		append_texts(e, c, texts(c));
	send_record(e, p, false);
}

/* The call that the thread has ended, in to, and its process; none if it is not looked into. */
static __always_inline struct process *take(struct call *to)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, tid = id;
	struct call *c = bpf_map_lookup_elem(&calls, &tid);

	if (!c || c->tgid != tgid || !c->start)
		return 0;
	*to = *c;
	c->start = 0;
	return compat(current_task()) ? 0 : bpf_map_lookup_elem(&processes, &tgid);
}
