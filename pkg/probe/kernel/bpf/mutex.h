/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Waits for kernel locks, which the decoder names by the callers. */
#pragma once

#define LCB_F_MUTEX (1U << 5) /* include/trace/events/lock.h */
#define MUTEX_FLAGS 7	      /* kernel/locking/mutex.c: the rest is the owner */

struct contended {
	__u64 lock, start;
	struct task_key owner;
	__u8 comm[16];
};

/* By thread, up to [limits] processes; more waits are not reported. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct contended);
} contentions SEC(".maps");

static __always_inline void contention_begins(void *lock)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, tid = id;
	struct contended c = {}, *before;
	struct task_struct *owner;

	if (!bpf_map_lookup_elem(&processes, &tgid))
		return;
	/* The event comes twice: before spinning and before sleeping. An earlier thread with
	 * that number may have left an entry. */
	before = bpf_map_lookup_elem(&contentions, &tid);
	if (before && before->lock == (__u64)lock && before->start >= BPF_CORE_READ(current_task(), start_time))
		return;
	c.lock = (__u64)lock;
	c.start = bpf_ktime_get_ns();
	owner = (void *)(BPF_CORE_READ((struct mutex *)lock, owner.counter) & ~MUTEX_FLAGS);
	if (owner) {
		c.owner.start = BPF_CORE_READ(owner, group_leader, start_boottime);
		c.owner.tgid = BPF_CORE_READ(owner, tgid);
		c.owner.pid = visible_pid(owner);
		bpf_probe_read_kernel(c.comm, sizeof(c.comm),
				      (void *)BPF_CORE_READ(owner, group_leader) +
					      bpf_core_field_offset(struct task_struct, comm));
	}
	bpf_map_update_elem(&contentions, &tid, &c, BPF_ANY);
}

static __always_inline void contention_ends(void *ctx, struct task_struct *task, void *lock)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, tid = id;
	struct contended *found = bpf_map_lookup_elem(&contentions, &tid), c;
	struct process *p;
	struct call_event *e;
	struct call *in;
	struct sock *sk;

	if (!found || found->lock != (__u64)lock)
		return;
	c = *found;
	bpf_map_delete_elem(&contentions, &tid);
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (!p || bpf_ktime_get_ns() - c.start < CONTENDED)
		return;
	e = record(task, p, CLASS_MUTEX, 0, 0);
	if (!e)
		return;
	e->start = c.start;
	e->object = c.lock;
	e->other = c.owner;
	in = bpf_map_lookup_elem(&calls, &tid);
	if (in && in->start && (in->class == CLASS_SENDTO || in->class == CLASS_SENDMSG)) {
		sk = sock_of(current_task(), in->args[0]);
		if (sk && family_of(sk) == AF_NETLINK) {
			e->port = 1;
			e->protocol = BPF_CORE_READ(sk, sk_protocol);
		}
	}
	__builtin_memcpy(e->comm, c.comm, sizeof(e->comm));
	long n = bpf_get_stack(ctx, e->data, STACK_DEPTH * 8, 0);

	if (n > 0 && n <= STACK_DEPTH * 8)
		e->len = n;
	send_record(e, p, false);
}
