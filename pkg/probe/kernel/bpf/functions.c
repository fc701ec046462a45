// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Function tracing: sees what inside.c sees, but by functions of the kernel that few other
 * processes call, and not by every system call. The headers are shared. The programs stay
 * attached; waits (waits.h) and agents' streams (talk.h) are traced on demand. The table in
 * functions_linux.go has the functions, whose names differ by kernel and architecture.
 * bpf_task_pt_regs, Linux 5.15, returns the system call of a function. */
#include "kernel_inside.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading; see inside.c. */
volatile const __u32 pid_ns = 0;
volatile const __u32 node_net = 0;
volatile const __u64 ring_high = 0;
volatile const __u64 quota = 0;
volatile const __s32 root_share = 0;
volatile const __u8 agent_depth = 1;
volatile const __u8 class_of[NR_MAX] = {};
volatile const __u64 min_span = 0;
volatile const __u64 questions_of[SUBSYSTEMS] = {};
volatile const __u8 texts_of[NR_MAX] = {};
volatile const __u8 timeout_of[NR_MAX] = {};
volatile const __u8 path_of[NR_MAX] = {};
volatile const __u32 regs_at = 0;

#define FUNCTIONS
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

#define FILE_LOCK_DEFERRED 1  /* include/linux/filelock.h */
#define MAX_ERRNO 4095

/* The followed process that calls this function, and its system call. */
static __always_inline struct process *caller_here(struct call *c)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 tgid = task->tgid;

	if (!call_of(task, c) || compat(task))
		return 0;
	c->start = bpf_ktime_get_ns();
	return bpf_map_lookup_elem(&processes, &tgid);
}

/* The call that the thread has ended, and its process; none if it is not followed. */
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

#define RETURNED(ctx)                             \
	({                                        \
		__u64 ret_ = 0;                   \
		bpf_get_func_ret(ctx, &ret_);     \
		(__s64)ret_;                      \
	})

/* Stores the start of system calls of some classes that call the function. */
#define BEGIN(name, where, ...)                                            \
	SEC("fentry/" where)                                               \
	int name(unsigned long long *ctx)                                  \
	{                                                                  \
		struct call c = {};                                        \
		struct process *p;                                         \
									   \
		if (!may_be_ours())                                        \
			return 0;                                          \
		hold();                                                    \
		p = caller_here(&c);                                       \
		if (p && is_one_of(c.class, __VA_ARGS__) && begun(p, &c))  \
			keep(&c);                                          \
		let_go();                                                  \
		return 0;                                                  \
	}

/* … and handles its return. handle returns whether everything was reported. */
#define END(name, where, as, handle, ...)                                  \
	SEC("fexit/" where)                                                \
	int name(unsigned long long *ctx)                                  \
	{                                                                  \
		struct task_struct *task = current_task();                 \
		__s64 ret;                                                 \
		struct process *p;                                         \
		struct call c;                                             \
									   \
		if (!may_be_ours())                                        \
			return 0;                                          \
		ret = (as)RETURNED(ctx);                                   \
		hold();                                                    \
		p = take(&c);                                              \
		if (p && is_one_of(c.class, __VA_ARGS__) && !handle(task, p, &c, ret)) \
			lasted(task, p, &c, ret);                          \
		let_go();                                                  \
		return 0;                                                  \
	}

static __always_inline bool is_one_of(__u8 class, __u8 a, __u8 b)
{
	return class == a || class == b;
}

/* Handles some calls before they are stored. */
static __always_inline bool begun(struct process *p, struct call *c)
{
	if (c->class == CLASS_CONNECT)
		enter_connect(current_task(), p, c);
	return true;
}

static __always_inline int nothing(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	return 0;
}

/* Namespaces' descriptors are reported at their use. */
static __always_inline void use_namespace(struct task_struct *task, struct process *p, const struct call *c, __u32 fd)
{
	struct call opened = *c;

	opened.class = CLASS_OPEN;
	exit_open(task, p, &opened, fd);
}

static __always_inline int end_enter(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	if (c->class == CLASS_SETNS && !ret)
		use_namespace(task, p, c, c->args[0]);
	return exit_enter(task, p, c, ret);
}

BEGIN(on_setns, "setns", CLASS_SETNS, CLASS_SETNS)
END(on_setns_end, "setns", long, end_enter, CLASS_SETNS, CLASS_SETNS)
BEGIN(on_unshare, "unshare", CLASS_UNSHARE, CLASS_UNSHARE)
END(on_unshare_end, "unshare", long, end_enter, CLASS_UNSHARE, CLASS_UNSHARE)
BEGIN(on_bpf, "bpf", CLASS_BPF, CLASS_BPF)
END(on_bpf_end, "bpf", long, exit_bpf, CLASS_BPF, CLASS_BPF)
BEGIN(on_mount, "mount", CLASS_WORK, CLASS_WORK)
END(on_mount_end, "mount", long, nothing, CLASS_WORK, CLASS_WORK)
BEGIN(on_umount, "umount", CLASS_WORK, CLASS_WORK)
END(on_umount_end, "umount", long, nothing, CLASS_WORK, CLASS_WORK)
BEGIN(on_move_mount, "move_mount", CLASS_WORK, CLASS_WORK)
END(on_move_mount_end, "move_mount", long, nothing, CLASS_WORK, CLASS_WORK)
BEGIN(on_unix_connect, "unix_stream_connect", CLASS_CONNECT, CLASS_CONNECT)
END(on_unix_connect_end, "unix_stream_connect", int, exit_connect, CLASS_CONNECT, CLASS_CONNECT)
BEGIN(on_inet_connect, "inet_stream_connect", CLASS_CONNECT, CLASS_CONNECT)
END(on_inet_connect_end, "inet_stream_connect", int, exit_connect, CLASS_CONNECT, CLASS_CONNECT)
BEGIN(on_dgram_connect, "inet_dgram_connect", CLASS_CONNECT, CLASS_CONNECT)
END(on_dgram_connect_end, "inet_dgram_connect", int, exit_connect, CLASS_CONNECT, CLASS_CONNECT)
BEGIN(on_setting, "proc_sys_write", CLASS_WRITE, CLASS_WRITE)
END(on_setting_end, "proc_sys_write", long, write_setting, CLASS_WRITE, CLASS_WRITE)
BEGIN(on_sockopt, "nf_setsockopt", CLASS_SETSOCKOPT, CLASS_SETSOCKOPT)
END(on_sockopt_end, "nf_setsockopt", int, exit_legacy, CLASS_SETSOCKOPT, CLASS_SETSOCKOPT)
BEGIN(on_ioctl, "sock_ioctl", CLASS_IOCTL, CLASS_IOCTL)
END(on_ioctl_end, "sock_ioctl", long, exit_legacy, CLASS_IOCTL, CLASS_IOCTL)

#include "answers.h"
#include "pipes.h"

/* A namespace that a request names. */
SEC("fexit/get_net_ns_by_fd")
int on_namespace(unsigned long long *ctx)
{
	struct call c = {};
	struct process *p;

	if (!may_be_ours())
		return 0;
	hold();
	p = caller_here(&c);
	if (p)
		use_namespace(current_task(), p, &c, ctx[0]);
	let_go();
	return 0;
}

/* File locks: the function is called at each attempt. ret is the result. */
static __always_inline void tried(__s64 ret)
{
	struct task_struct *task = current_task();
	__u32 tid = bpf_get_current_pid_tgid();
	struct call c = {}, *known;
	struct process *p = caller_here(&c);
	bool waited;

	if (!p || !is_one_of(c.class, CLASS_FLOCK, CLASS_FCNTL) || !locks(&c))
		return;
	known = bpf_map_lookup_elem(&calls, &tid);
	waited = known && known->tgid == c.tgid && known->start && known->nr == c.nr;
	if (ret == FILE_LOCK_DEFERRED) {
		if (waited) /* failed */
			return;
		enter_lock(task, p, &c);
		keep(&c);
		return;
	}
	if (waited) {
		c.start = known->start;
		known->start = 0;
	}
	exit_lock(task, p, &c, ret);
}

SEC("tp_btf/flock_lock_inode")
int BPF_PROG(on_flock, void *inode, void *lock, int ret)
{
	if (!may_be_ours())
		return 0;
	hold();
	tried(ret);
	let_go();
	return 0;
}

SEC("tp_btf/posix_lock_inode")
int BPF_PROG(on_fcntl, void *inode, void *lock, int ret)
{
	if (!may_be_ours())
		return 0;
	hold();
	tried(ret);
	let_go();
	return 0;
}

/* The accepted socket, which has no descriptor yet. */
static __always_inline void accepted_file(__u64 file)
{
	struct socket *socket;
	struct sock *sk;

	if (!file || file >= -MAX_ERRNO)
		return;
	socket = BPF_CORE_READ((struct file *)file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (sk && answered(current_task(), conn_to(sk)))
		serve_socket(sk);
}

SEC("fexit/do_accept")
int on_accept(unsigned long long *ctx)
{
	__u64 file = RETURNED(ctx);

	hold();
	accepted_file(file);
	let_go();
	return 0;
}

/* The last descriptor of a socket is closed. */
static __always_inline void released(struct socket *socket)
{
	struct call c = {};
	struct process *p = caller_here(&c);
	struct sock *sk;

	if (!p || c.class != CLASS_CLOSE || (!p->connected && !p->agent))
		return;
	sk = BPF_CORE_READ(socket, sk);
	if (p->agent)
		close_stream(sk, p);
	close_conn(current_task(), p, &c, (__u64)sk);
}

SEC("fentry/unix_release")
int on_unix_close(unsigned long long *ctx)
{
	if (may_be_ours() < TALKS)
		return 0;
	hold();
	released((void *)ctx[0]);
	let_go();
	return 0;
}

SEC("fentry/inet_release")
int on_inet_close(unsigned long long *ctx)
{
	if (may_be_ours() < TALKS)
		return 0;
	hold();
	released((void *)ctx[0]);
	let_go();
	return 0;
}

static __always_inline bool may_be_spoken_to(struct kiocb *iocb)
{
	return is_marked(iocb->ki_filp->f_inode->i_ino);
}

/* A run's standard input and output through pipes. */
static __noinline int moves(__s64 n, __u8 class, __u8 of_many)
{
	struct call c = {};
	struct process *p;

	if (!may_be_ours())
		return 0;
	hold();
	p = caller_here(&c);
	if (p && is_one_of(c.class, class, of_many))
		exit_file(current_task(), p, &c, n);
	let_go();
	return 0;
}

SEC("fexit/pipe_read")
int on_read(unsigned long long *ctx)
{
	return may_be_spoken_to((void *)ctx[0]) ? moves(RETURNED(ctx), CLASS_READ, CLASS_READV) : 0;
}

/* … at its start: a pipe takes everything in the end. */
SEC("fentry/pipe_write")
int on_write(unsigned long long *ctx)
{
	return may_be_spoken_to((void *)ctx[0]) ? moves(BPF_CORE_READ((struct iov_iter *)ctx[1], count), CLASS_WRITE, CLASS_WRITEV) : 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(on_tcp_state, const struct sock *sk, const int old, const int new)
{
	hold();
	tcp_state((struct sock *)sk, old, new);
	let_go();
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

#include "waits.h"
#include "before.h"
#include "talk.h"
#include "misses.h"
