/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What is read off a task. */
#pragma once

/* A field that lies behind some pointers, READ(task, signal, flags). Where TYPED is defined every
 * pointer comes from a tracepoint's argument or from what that points to, so the verifier knows
 * its type and lets the program load from it: that costs less than a helper, and is allowed
 * where the kernel withholds its memory from helpers (lockdown=confidentiality). Either gives 0
 * behind a null pointer. */
#ifdef TYPED
#define READ(...) ___arrow(__VA_ARGS__)
#else
#define READ(...) BPF_CORE_READ(__VA_ARGS__)
#endif

/* What is called from many places. Programs that go on to other ones (inside.c) have no functions:
 * before Linux 6.0 arm64 refuses both in one. */
#ifdef TYPED
#define FUNCTION static __noinline
#else
#define FUNCTION static __always_inline
#endif

/* A field of which kernels do not agree on the type, but on the size. */
#ifdef TYPED
#define READ_WHOLE(to, from, field) (*(to) = *(typeof(to))((void *)(from) + bpf_core_field_offset((from)->field)))
#else
#define READ_WHOLE(to, from, field) bpf_core_read(to, sizeof(*(to)), &(from)->field)
#endif

#define CAP_NET_ADMIN 12
#define CAP_SYS_ADMIN 21
#define SIGNAL_GROUP_EXIT 4 /* include/linux/sched/signal.h */
#define EEXIST 17

/* Deeper than any container in a container; MAX_PID_NS_LEVEL is 32. */
#define PID_LEVELS 8

/* Newer kernels preempt programs, at functions (6.12, if it is told to) and at tracepoints (7.2), and then another one may
 * run on the CPU and write into the same scratch. And while a program is preempted the kernel does not run it on that CPU for
 * anybody else, who would not be seen (Stats tells how often). So a program is held: since Linux 6.10 it is not preempted from
 * hold to let_go.
 *
 * Where somebody else's turn has come meanwhile, to allow preemption again would go on to them at once, still inside the
 * program. With interrupts off, since Linux 6.14, the kernel puts that off until the program has returned. What remains are
 * the few instructions before hold and after let_go. */
extern void bpf_preempt_disable(void) __ksym __attribute__((weak));
extern void bpf_preempt_enable(void) __ksym __attribute__((weak));
extern void bpf_local_irq_save(unsigned long *) __ksym __attribute__((weak));
extern void bpf_local_irq_restore(unsigned long *) __ksym __attribute__((weak));

static __always_inline void hold(void)
{
	if (bpf_preempt_disable)
		bpf_preempt_disable();
}

static __always_inline void let_go(void)
{
	unsigned long flags;

	if (!bpf_preempt_enable)
		return;
	if (!bpf_local_irq_save) {
		bpf_preempt_enable();
		return;
	}
	bpf_local_irq_save(&flags);
	bpf_preempt_enable();
	bpf_local_irq_restore(&flags);
}

/* BPF_PROG for a program that is held from its first instruction to its last. The others hold what follows upon their
 * first questions, which everybody pays for. */
#define HELD_PROG(name, args...)                                                    \
	name(unsigned long long *ctx);                                              \
	static __always_inline int held_##name(unsigned long long *ctx, ##args);    \
	int name(unsigned long long *ctx)                                           \
	{                                                                           \
		_Pragma("GCC diagnostic push")                                      \
		_Pragma("GCC diagnostic ignored \"-Wint-conversion\"")              \
		hold();                                                             \
		held_##name(___bpf_ctx_cast(args));                                 \
		let_go();                                                           \
		return 0;                                                           \
		_Pragma("GCC diagnostic pop")                                       \
	}                                                                           \
	static __always_inline int held_##name(unsigned long long *ctx, ##args)

/* Gives a pointer the type that it is said to have; Linux 6.2. */
extern void *bpf_rdonly_cast(const void *, __u32) __ksym __attribute__((weak));
#define CAST(pointer, type) ((struct type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(struct type)))

/* A field of a struct of that type: by a load where the kernel allows one, which costs a tenth of a helper. 0 behind a null
 * pointer, and behind one that leads nowhere. */
#define LOAD(pointer, type, field)                                                             \
	({                                                                                     \
		struct type *of_ = (void *)(pointer);                                          \
		bpf_rdonly_cast ? CAST(of_, type)->field : BPF_CORE_READ(of_, field);          \
	})

/* A process's number, or a session's, in the PID namespace of some level, and that namespace by
 * its inode number. 0 if that cannot be read: on Linux before 6.2, where kernel memory is withheld,
 * for any level but the first. numbers[] became a flexible array in 6.5; its offset is what counts. */
static __always_inline __u32 number_at(struct pid *pid, unsigned int level, __u32 *ns)
{
	struct upid *number = (void *)pid + bpf_core_field_offset(struct pid, numbers), copy = {};
	__u32 nr;

#ifdef TYPED
	if (bpf_rdonly_cast)
		number = (void *)CAST((void *)pid + level * sizeof(*number), pid) + bpf_core_field_offset(struct pid, numbers);
	if (bpf_rdonly_cast || !level) {
		*ns = number->ns->ns.inum;
		return number->nr;
	}
	if (withheld)
		return 0;
#endif
	bpf_probe_read_kernel(&copy, sizeof(copy), number + level);
	*ns = BPF_CORE_READ(copy.ns, ns.inum);
	nr = copy.nr;
	/* Or the compiler reads this and number->nr by one instruction, which the verifier does not take. */
	asm volatile("" : "+r"(nr));
	return nr;
}

/* What a process, or a session, is in cniscope's PID namespace; 0 if it is not in there
 * or below: a cniscope inside a kind node sees the calls of that node alone. */
FUNCTION __u32 number_in_ours(struct pid *pid)
{
	unsigned int level = READ(pid, level);
	__u32 ns = 0, number;

	for (unsigned int i = 0; i < PID_LEVELS; i++) {
		if (i > level)
			break;
		number = number_at(pid, i, &ns);
		if (ns == pid_ns)
			return number;
	}
	return 0;
}

/* The task's number there; 0 if it has none. */
static __always_inline __u32 visible_pid(struct task_struct *task)
{
	return number_in_ours(READ(task, group_leader, thread_pid));
}

#define PIDTYPE_SID 3 /* include/linux/pid_types.h, since 4.19 */

static __always_inline struct pid *session_of(struct task_struct *task)
{
	return READ(task, signal, pids[PIDTYPE_SID]);
}

/* Its session's number there, as /proc has it; 0 if it has none. */
static __always_inline __u32 visible_session(struct task_struct *task)
{
	return number_in_ours(session_of(task));
}

/* Its mount namespace, by inode number. */
static __always_inline __u32 mounts_of(struct task_struct *task)
{
	return READ(task, nsproxy, mnt_ns, ns.inum);
}

#define RIGHT(cap) (1ULL << (cap))
#define RIGHTS (RIGHT(CAP_NET_ADMIN) | RIGHT(CAP_SYS_ADMIN))

/* Which of RIGHTS the process has and its caller had, too, in whatever user namespace: root's
 * or ambient. A set-user-ID program, or one whose file has capabilities, has the environment
 * of somebody who has no such right. */
static __always_inline __u64 own_rights(const struct cred *cred)
{
	__u64 caps = 0, ambient = 0;

	READ_WHOLE(&caps, cred, cap_effective);
	if (READ(cred, uid.val)) {
		READ_WHOLE(&ambient, cred, cap_ambient);
		caps &= ambient;
	}
	return caps & RIGHTS;
}

/* … in the initial user namespace. */
static __always_inline __u64 rights(struct task_struct *task)
{
	const struct cred *cred = task->cred;
	__u64 has = own_rights(cred);

	return has && READ(cred, user_ns, level) == 0 ? has : 0;
}

/* Whether the process may do anything on the node, or anything to its network:
 * CAP_SYS_ADMIN, or CAP_NET_ADMIN in the node's own network namespace, in the initial user
 * namespace. Of an agent that is, what it starts of CNI is believed. */
static __always_inline bool privileged_on_node(struct task_struct *task)
{
	const struct cred *cred = READ(task, cred);
	__u64 caps = 0;

	READ_WHOLE(&caps, cred, cap_effective);
	if (!(caps & RIGHTS) || READ(cred, user_ns, level))
		return false;
	if (caps & RIGHT(CAP_SYS_ADMIN))
		return true;
	return node_net && visible_pid(task) && READ(task, nsproxy, net_ns, ns.inum) == node_net;
}

static __always_inline void key_of(struct task_struct *task, struct task_key *key)
{
	key->start = READ(task, group_leader, start_boottime);
	key->tgid = READ(task, tgid);
	key->pid = visible_pid(task);
}

/* What tells a network namespace from all others: its cookie, before 5.12 its inode number. */
static __always_inline __u64 cookie_of(struct net *net)
{
	if (bpf_core_field_exists(net->net_cookie))
		return READ(net, net_cookie);
	return READ(net, ns.inum);
}

static __always_inline void netns_of(struct task_struct *task, __u64 *cookie, __u32 *inum)
{
	/* Gone early in the exit of a thread that is not the last one. */
	struct net *net = READ(task, nsproxy, net_ns);

	if (!net)
		return;
	*inum = READ(net, ns.inum);
	*cookie = cookie_of(net);
}

#define S_IFMT 0170000
#define S_IFCHR 0020000
#define S_IFIFO 0010000
#define S_IFSOCK 0140000

/* The file behind a descriptor of the task; none if it has no such. Not typed: a table of files is,
 * for the verifier, an array of pointers to nothing in particular. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct files_struct *open = LOAD(task, task_struct, files);
	struct fdtable *table = LOAD(open, files_struct, fdt);
	struct file **files = LOAD(table, fdtable, fd), *file = 0;

	if (fd >= LOAD(table, fdtable, max_fds))
		return 0;
	if (bpf_rdonly_cast) { /* a pointer is loaded as if it were a field of something that has one */
		void *place = (void *)files + (__u64)fd * sizeof(file);

		return CAST(place - bpf_core_field_offset(struct linux_binprm, file), linux_binprm)->file;
	}
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

/* What wait(2) reports of the process (kernel/exit.c, wait_task_zombie). */
static __always_inline __s32 wait_status(struct task_struct *task)
{
	struct signal_struct *signal = task->signal;

	if (READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return READ(signal, group_exit_code);
	return READ(task, group_leader, exit_code);
}
