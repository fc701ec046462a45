// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/*
 * What happens inside the processes of a CNI plugin's tree: what they ask of the
 * kernel and what they wait for. What is done with a system call is in the headers;
 * here it is only attached. Two BTF tracepoints see every system call of the node, at
 * some 70 ns each, so they are attached while a CNI call is under way and no longer.
 */
#include "kernel_inside.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading. */
volatile const __u32 pid_ns = 0;
volatile const __u64 ring_high = 0;
volatile const __u64 quota = 0;
volatile const __s32 root_share = 0;
volatile const __u8 agent_depth = 1; /* servers of servers that are followed */
volatile const __u8 class_of[NR_MAX] = {}; /* by the number of the system call */
volatile const __u8 texts_of[NR_MAX] = {}; /* which of its first four arguments are texts, a bit for each */

#include "maps.h"
#include "task.h"
#include "call.h"
#include "lock.h"
#include "network.h"
#include "file.h"
#include "program.h"
#include "socket.h"
#include "stream.h"
#include "mutex.h"

/* So that bpf2go makes Go types of them. */
const struct call_event *unused_call __attribute__((unused));
const struct conn *unused_conn __attribute__((unused));
const struct pair *unused_pair __attribute__((unused));
const struct half *unused_half __attribute__((unused));
const enum role *unused_role __attribute__((unused));
const struct stream *unused_stream __attribute__((unused));
const struct contended *unused_contended __attribute__((unused));
const enum class *unused_class __attribute__((unused));

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

static __always_inline __u8 class_of_exit(struct pt_regs *regs)
{
	struct pt_regs___x86 *x86 = (void *)regs;
	struct pt_regs___arm64 *arm64 = (void *)regs;
	__u64 nr;

	if (bpf_core_field_exists(x86->orig_ax))
		nr = x86->orig_ax;
	else
		nr = BPF_CORE_READ(arm64, syscallno);
	return nr < NR_MAX ? class_of[nr & (NR_MAX - 1)] : CLASS_NEVER;
}

/* 32-bit programs number their system calls differently (TS_COMPAT of x86). */
static __always_inline bool compat(struct task_struct *task)
{
	struct task_struct___x86 *x86 = (void *)task;

	return bpf_core_field_exists(x86->thread_info.status) && BPF_CORE_READ(x86, thread_info.status) & 2;
}

/* What is done when a call begins, for those where that matters. */
static __always_inline void begin(struct call *c)
{
	struct task_struct *task = current_task();
	struct process *p = bpf_map_lookup_elem(&processes, &c->tgid);

	if (!p || (c->class == CLASS_CLOSE && !p->connected && !p->agent) || compat(task))
		return;
	switch (c->class) {
	case CLASS_FLOCK:
	case CLASS_FCNTL:
		enter_lock(task, p, c);
		break;
	case CLASS_CONNECT:
		enter_connect(task, p, c);
		break;
	case CLASS_CLOSE:
		if (p->agent)
			close_stream(sock_of(task, c->args[0]), p);
		enter_close(task, p, c);
		break;
	}
}

static __always_inline bool begins(const struct call *c)
{
	switch (c->class) {
	case CLASS_FLOCK:
	case CLASS_FCNTL:
		return locks(c);
	case CLASS_CONNECT:
	case CLASS_CLOSE:
		return true;
	}
	return false;
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

static __always_inline void entered(struct pt_regs *regs, struct call *c, __u32 tid)
{
	struct call *known = bpf_map_lookup_elem(&calls, &tid);

	if (known && known->tgid != c->tgid)
		known = 0;
	if (!known && !bpf_map_lookup_elem(&processes, &c->tgid))
		return;
	c->start = bpf_ktime_get_ns();
	read_args(regs, c->args);
	if (begins(c))
		begin(c);
	if (known)
		*known = *c;
	else
		begin_thread(c, tid);
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

/* Most calls are short, and of no interest in themselves or by what came of them. */
static __always_inline bool dull(const struct call *c, __s64 ret)
{
	switch (c->class) {
	case CLASS_FLOCK:
	case CLASS_FCNTL:
		if (locks(c))
			return false;
		break;
	case CLASS_SENDTO:
	case CLASS_SENDMSG:
	case CLASS_RECVFROM:
	case CLASS_RECVMSG:
	case CLASS_READ:
	case CLASS_READV:
	case CLASS_OPEN:
		if (ret >= 0 || broken(ret))
			return false;
		break;
	case CLASS_BPF:
		if (attaches(c->args[0]) || (ret < 0 && requests(c->args[0])))
			return false;
		break;
	case CLASS_WRITE:
	case CLASS_WRITEV:
	case CLASS_CONNECT:
	case CLASS_ACCEPT:
	case CLASS_SETNS:
	case CLASS_UNSHARE:
	case CLASS_SETSOCKOPT:
	case CLASS_IOCTL:
		return false;
	}
	if (ret < 0 && texts(c))
		return false;
	return bpf_ktime_get_ns() - c->start < LASTED;
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

/* Whoever accepts a connection of ours is called by it. */
static __always_inline void accepts(struct task_struct *task, __s64 fd)
{
	if (accepted(task, fd))
		serve_stream(task, fd);
}

/* Writing to streams, and reading from them, of whoever is called and of whom it asks. */
static __always_inline bool talks(__u8 class)
{
	switch (class) {
	case CLASS_SENDTO:
	case CLASS_SENDMSG:
	case CLASS_RECVFROM:
	case CLASS_RECVMSG:
	case CLASS_READ:
	case CLASS_READV:
	case CLASS_WRITE:
	case CLASS_WRITEV:
		return true;
	}
	return false;
}

static __always_inline void returned(__u64 id, __u8 class, bool tracked, long ret)
{
	__u32 tgid = id >> 32, tid = id;
	struct task_struct *task;
	struct call *found = 0, c;
	struct process *p;

	if (tracked)
		found = bpf_map_lookup_elem(&calls, &tid);
	if (!found || found->tgid != tgid || !found->start) {
		if (ret >= 0 && class == CLASS_ACCEPT)
			accepts(current_task(), ret);
		return;
	}
	c = *found;
	found->start = 0;
	if (dull(&c, ret))
		return;
	task = current_task();
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (!p && c.class == CLASS_ACCEPT && ret >= 0)
		accepts(task, ret);
	if (!p || compat(task))
		return;
	switch (c.class) {
	case CLASS_FLOCK:
	case CLASS_FCNTL:
		exit_lock(task, p, &c, ret);
		return;
	case CLASS_SENDTO:
	case CLASS_SENDMSG:
		exit_send(task, p, &c, ret);
		break;
	case CLASS_RECVFROM:
	case CLASS_RECVMSG:
		exit_receive(task, p, &c, ret);
		break;
	case CLASS_READ:
	case CLASS_READV:
	case CLASS_WRITE:
	case CLASS_WRITEV:
		exit_file(task, p, &c, ret);
		break;
	case CLASS_OPEN:
		exit_open(task, p, &c, ret);
		break;
	case CLASS_CONNECT:
		exit_connect(task, p, &c, ret);
		return;
	case CLASS_ACCEPT:
		if (ret >= 0)
			accepts(task, ret);
		break;
	case CLASS_SETNS:
	case CLASS_UNSHARE:
		exit_enter(task, p, &c, ret);
		break;
	case CLASS_SETSOCKOPT:
	case CLASS_IOCTL:
		exit_legacy(task, p, &c, ret);
		break;
	case CLASS_BPF:
		if (exit_bpf(task, p, &c, ret))
			return;
		break;
	}
	lasted(task, p, &c, ret);
}

/* These two run at every system call of the node: cheap questions first. */
SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long nr)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct call c = {.tgid = id >> 32, .nr = nr};

	if ((unsigned long)nr >= NR_MAX)
		return 0;
	c.class = class_of[nr & (NR_MAX - 1)];
	if (c.class == CLASS_NEVER || !may_be_tracked(c.tgid))
		return 0;
	hold();
	entered(regs, &c, id);
	let_go();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_return, struct pt_regs *regs, long ret)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u8 class = class_of_exit(regs);
	bool tracked = may_be_tracked(id >> 32);

	if (class == CLASS_NEVER || (!tracked && (ret < 0 || class != CLASS_ACCEPT)))
		return 0;
	hold();
	returned(id, class, tracked, ret);
	let_go();
	return 0;
}

/* Streams have a program of their own: within on_return the verifier of newer kernels takes
 * minutes, for all that comes after in each state that a stream may be in. It runs before
 * on_return, which takes note that the call is over. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_stream, struct pt_regs *regs, long ret)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32, tid = id;
	struct process *p;
	struct call *found, c;

	if (!talks(class_of_exit(regs)) || !may_be_tracked(tgid))
		return 0;
	hold();
	found = bpf_map_lookup_elem(&calls, &tid);
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (found && found->tgid == tgid && found->start && p && p->agent && !compat(current_task())) {
		c = *found;
		exit_stream(current_task(), p, &c, ret);
	}
	let_go();
	return 0;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void *lock, unsigned int flags)
{
	hold();
	contention_begins(lock, flags);
	let_go();
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int ret)
{
	hold();
	contention_ends(ctx, current_task(), lock);
	let_go();
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_tcp_state, const struct sock *sk, const int old, const int new)
{
	hold();
	tcp_state((struct sock *)sk, old, new);
	let_go();
	return 0;
}
