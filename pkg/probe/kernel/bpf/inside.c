// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* System-call tracing of a CNI plugin's tree: requests to the kernel, and waits. Two BTF
 * tracepoints see every system call of the node, at about 70 ns each, so they are attached only
 * during CNI calls. Most calls matter only if they wait, which the scheduler reports (waits.h):
 * then the two only read the call's number. The headers handle the calls. */
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
volatile const __u8 agent_depth = 1; /* depth of followed servers */
volatile const __u8 class_of[NR_MAX] = {}; /* by system call number */
volatile const __u64 min_span = 0; /* ns; shorter queries are counted */
volatile const __u64 questions_of[SUBSYSTEMS] = {}; /* by netfilter's subsystem, a bit per message */
volatile const __u8 texts_of[NR_MAX] = {}; /* text arguments among the first four, a bit each */
volatile const __u8 timeout_of[NR_MAX] = {}; /* how a call gets its timeout, see waits.h */
volatile const __u8 path_of[NR_MAX] = {}; /* which argument is a path, from 1; see misses.h */
volatile const __u32 regs_at = 0; /* offset of a task's registers on its stack; 0: a helper returns them */

#include "maps.h"
#include "task.h"
#include "call.h"
#include "lock.h"
#include "network.h"
#include "file.h"
#include "program.h"
#include "socket.h"
#include "context.h"
#include "stream.h"
#include "mutex.h"
#include "thread.h"
#include "answers.h"
#include "waits.h"
#include "before.h"
#include "misses.h"

/* For bpf2go's Go types. */
const struct call_event *unused_call __attribute__((unused));
const struct conn *unused_conn __attribute__((unused));
const struct pair *unused_pair __attribute__((unused));
const struct half *unused_half __attribute__((unused));
const enum role *unused_role __attribute__((unused));
const struct stream *unused_stream __attribute__((unused));
const struct contended *unused_contended __attribute__((unused));
const enum class *unused_class __attribute__((unused));

#define OF(class) (1ULL << ((class) & 63))

/* Calls by which a server may use a stream. Of plugins only reads of standard input matter, at their end. */
#define RECEIVING (OF(CLASS_RECVFROM) | OF(CLASS_RECVMSG))
#define READING (OF(CLASS_READ) | OF(CLASS_READV) | RECEIVING)
/* Calls that may take long without waiting, or are reported with a duration. */
#define TIMED                                                                                                      \
	(OF(CLASS_FLOCK) | OF(CLASS_FCNTL) | OF(CLASS_SENDTO) | OF(CLASS_SENDMSG) | OF(CLASS_WRITE) | OF(CLASS_WRITEV) | \
	 OF(CLASS_CONNECT) | OF(CLASS_SETNS) | OF(CLASS_UNSHARE) | OF(CLASS_SETSOCKOPT) | OF(CLASS_IOCTL) | OF(CLASS_BPF) | OF(CLASS_WORK))
#define AT_BEGINNING (TIMED | READING | OF(CLASS_CLOSE))
#define AT_END (TIMED | READING | OF(CLASS_OPEN) | OF(CLASS_ACCEPT))

static __always_inline bool is_of(__u8 class, __u64 some)
{
	return some >> (class & 63) & 1;
}

static __always_inline void entered(struct pt_regs *regs, __u16 nr, __u8 class)
{
	struct task_struct *task = current_task();
	struct call c = {.tgid = bpf_get_current_pid_tgid() >> 32, .nr = nr, .class = class};
	struct process *p = bpf_map_lookup_elem(&processes, &c.tgid);

	if (!p || (is_of(class, READING) && !p->agent) || (class == CLASS_CLOSE && !p->connected && !p->agent) || compat(task))
		return;
	c.start = bpf_ktime_get_ns();
	read_args(regs, true, c.args);
	switch (class) {
	case CLASS_SENDTO:
	case CLASS_SENDMSG:
		c.conn = answers_of(sock_of(task, c.args[0]));
		break;
	case CLASS_FLOCK:
	case CLASS_FCNTL:
		enter_lock(task, p, &c);
		break;
	case CLASS_CONNECT:
		enter_connect(task, p, &c);
		break;
	case CLASS_CLOSE:
		if (p->agent)
			close_stream(sock_of(task, c.args[0]), p);
		enter_close(task, p, &c);
		return;
	}
	keep(&c);
}

#include "ends.h"

/* Most commands of fcntl do not concern locks. */
static __always_inline bool is_no_lock(__u8 class, struct pt_regs *regs)
{
	struct call c = {.class = class};

	if (class != CLASS_FCNTL)
		return false;
	c.args[1] = arg_in(regs, true, 1);
	return !locks(&c);
}

/* Whether a call's result does not matter: most failures of close and open. */
static __always_inline bool is_idle(__u8 class, long ret)
{
	return ret < 0 && (class == CLASS_OPEN || class == CLASS_ACCEPT || (is_of(class, READING) && !broken(ret)));
}

/* These two run at every system call of the node: cheap tests first. */
SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long nr)
{
	__u8 class = class_at(nr);
	__u32 ours = is_of(class, AT_BEGINNING) ? may_be_ours() : 0;

	if (!ours || (ours < TALKS && is_of(class, READING | OF(CLASS_CLOSE))) || is_no_lock(class, regs))
		return 0;
	hold();
	entered(regs, nr, class);
	let_go();
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_return, struct pt_regs *regs, long ret)
{
	__u8 class = class_at(number_in(regs, true));
	__u32 ours;

	if (!is_of(class, AT_END) || is_idle(class, ret) || is_no_lock(class, regs))
		return 0;
	ours = may_be_ours();
	if (class == CLASS_ACCEPT || ours >= TALKS || (ours && !is_of(class, RECEIVING)))
		bpf_tail_call(ctx, &endings, ending_of(class, regs, ret));
	return 0;
}

SEC("tp_btf/contention_begin")
int BPF_PROG(on_contention, void *lock, unsigned int flags)
{
	if (!(flags & LCB_F_MUTEX) || !may_be_ours())
		return 0;
	hold();
	contention_begins(lock);
	let_go();
	return 0;
}

SEC("tp_btf/contention_end")
int BPF_PROG(on_contention_end, void *lock, int ret)
{
	if (!may_be_ours())
		return 0;
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


