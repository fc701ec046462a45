/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Fields of a task. */
#pragma once

/* A field behind pointers, READ(task, signal, flags). With TYPED every pointer comes from a
 * tracepoint's argument, so the verifier knows its type and allows loads: these cost less than a
 * helper, and work where the kernel withholds its memory from helpers
 * (lockdown=confidentiality). Both give 0 behind a null pointer. */
#ifdef TYPED
#define READ(...) ___arrow(__VA_ARGS__)
#else
#define READ(...) BPF_CORE_READ(__VA_ARGS__)
#endif

/* For code with many callers. Programs with tail calls (inside.c) have no functions: before
 * Linux 6.0 arm64 refuses both in one. */
#ifdef TYPED
#define FUNCTION static __noinline
#else
#define FUNCTION static __always_inline
#endif

/* A field whose type differs between kernels, but not its size. */
#ifdef TYPED
#define READ_WHOLE(to, from, field) (*(to) = *(typeof(to))((void *)(from) + bpf_core_field_offset((from)->field)))
#else
#define READ_WHOLE(to, from, field) bpf_core_read(to, sizeof(*(to)), &(from)->field)
#endif

#define CAP_NET_ADMIN 12
#define CAP_SYS_ADMIN 21
#define SIGNAL_GROUP_EXIT 4 /* include/linux/sched/signal.h */
#define EEXIST 17

/* Deeper than nested containers get; MAX_PID_NS_LEVEL is 32. */
#define PID_LEVELS 8

/* Newer kernels preempt programs, at functions (6.12, if configured) and at tracepoints (7.2).
 * Then another program may run on the CPU and overwrite the scratch, and the kernel skips
 * further runs of the preempted one on that CPU (Stats counts them). So since Linux 6.10 a
 * program is not preempted between hold and let_go. If another task is due, allowing preemption
 * would switch to it inside the program. With interrupts off, since Linux 6.14, the switch comes
 * after the program. Only the instructions before hold and after let_go remain. */
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

/* BPF_PROG for a program that is held from its first to its last instruction. Others only hold
 * what follows their first tests, which every process pays for. */
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

/* Gives a pointer the named type; Linux 6.2. */
extern void *bpf_rdonly_cast(const void *, __u32) __ksym __attribute__((weak));
#define CAST(pointer, type) ((struct type *)bpf_rdonly_cast(pointer, bpf_core_type_id_kernel(struct type)))

/* A field of a struct of that type, by a load where the kernel allows one, at a tenth of a
 * helper's cost. 0 behind null and invalid pointers. */
#define LOAD(pointer, type, field)                                                             \
	({                                                                                     \
		struct type *of_ = (void *)(pointer);                                          \
		bpf_rdonly_cast ? CAST(of_, type)->field : BPF_CORE_READ(of_, field);          \
	})

/* The number of a process or session in the PID namespace of a level, and that namespace's inode
 * number. 0 if unreadable: before Linux 6.2 with withheld memory, for any level but the first.
 * numbers[] became a flexible array in 6.5; only its offset counts. */
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
	/* Otherwise the compiler reads this and number->nr by one instruction, which the
	 * verifier refuses. */
	asm volatile("" : "+r"(nr));
	return nr;
}

/* The number in cniscope's PID namespace; 0 outside of it and its children: in a kind node
 * cniscope sees only that node's calls. */
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

/* Its session's number there, as in /proc; 0 if it has none. */
static __always_inline __u32 visible_session(struct task_struct *task)
{
	return number_in_ours(session_of(task));
}

/* The inode number of its mount namespace. */
static __always_inline __u32 mounts_of(struct task_struct *task)
{
	return READ(task, nsproxy, mnt_ns, ns.inum);
}

#define RIGHT(cap) (1ULL << (cap))
#define RIGHTS (RIGHT(CAP_NET_ADMIN) | RIGHT(CAP_SYS_ADMIN))

/* The RIGHTS that the process and its caller have, in any user namespace: root's or ambient
 * ones. A set-user-ID program, or one with file capabilities, has the environment of an
 * unprivileged caller. */
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

/* Whether the process may do anything on the node, or to its network: in the initial user
 * namespace CAP_SYS_ADMIN, or CAP_NET_ADMIN in the node's network namespace. CNI plugins of such
 * an agent are trusted. */
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

/* The identity of a network namespace: its cookie, before 5.12 its inode number. */
static __always_inline __u64 cookie_of(struct net *net)
{
	if (bpf_core_field_exists(net->net_cookie))
		return READ(net, net_cookie);
	return READ(net, ns.inum);
}

static __always_inline void netns_of(struct task_struct *task, __u64 *cookie, __u32 *inum)
{
	/* Already gone in the exit of a thread that is not the last. */
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

/* The file behind a descriptor, or none. Untyped: to the verifier a table of files has untyped
 * pointers. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct files_struct *open = LOAD(task, task_struct, files);
	struct fdtable *table = LOAD(open, files_struct, fdt);
	struct file **files = LOAD(table, fdtable, fd), *file = 0;

	if (fd >= LOAD(table, fdtable, max_fds))
		return 0;
	if (bpf_rdonly_cast) { /* reads a pointer as a field of something */
		void *place = (void *)files + (__u64)fd * sizeof(file);

		return CAST(place - bpf_core_field_offset(struct linux_binprm, file), linux_binprm)->file;
	}
	bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

/* The process's status for wait(2) (kernel/exit.c, wait_task_zombie). */
static __always_inline __s32 wait_status(struct task_struct *task)
{
	struct signal_struct *signal = task->signal;

	if (READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return READ(signal, group_exit_code);
	return READ(task, group_leader, exit_code);
}
