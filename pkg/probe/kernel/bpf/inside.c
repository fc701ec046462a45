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
volatile const __u32 node_net = 0;
volatile const __u64 ring_high = 0;
volatile const __u64 quota = 0;
volatile const __s32 root_share = 0;
volatile const __u8 agent_depth = 1; /* servers of servers that are followed */
volatile const __u8 class_of[NR_MAX] = {}; /* by the number of the system call */
volatile const __u64 min_span = 0; /* ns; shorter questions are counted, not told */
volatile const __u64 questions_of[SUBSYSTEMS] = {}; /* by netfilter's subsystem, a bit for each message */
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
#include "before.h"
#include "mutex.h"
#include "thread.h"

/* So that bpf2go makes Go types of them. */
const struct call_event *unused_call __attribute__((unused));
const struct conn *unused_conn __attribute__((unused));
const struct pair *unused_pair __attribute__((unused));
const struct half *unused_half __attribute__((unused));
const enum role *unused_role __attribute__((unused));
const struct stream *unused_stream __attribute__((unused));
const struct contended *unused_contended __attribute__((unused));
const enum class *unused_class __attribute__((unused));

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

#include "ends.h"

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
	enum ending to;

	if (class == CLASS_NEVER || (!tracked && (ret < 0 || class != CLASS_ACCEPT)))
		return 0;
	hold();
	to = returned(id, class, tracked, ret);
	let_go(); /* no program may go on to another one before */
	if (to < ENDINGS)
		bpf_tail_call(ctx, &endings, to);
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
