/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What is read off a task. */
#pragma once

#define CAP_NET_ADMIN 12
#define CAP_SYS_ADMIN 21
#define SIGNAL_GROUP_EXIT 4 /* include/linux/sched/signal.h */
/* Deeper than any container in a container; MAX_PID_NS_LEVEL is 32. */
#define PID_LEVELS 8

/* Newer kernels (7.2 does, 6.12 does not) preempt the programs of tracepoints, and then
 * another one may run on the CPU and write into the same scratch. Since 6.12 that can be
 * forbidden. What cannot: while a program is preempted the kernel does not run the same one
 * on that CPU for anybody else (Stats tells how often). */
extern void bpf_preempt_disable(void) __ksym __attribute__((weak));
extern void bpf_preempt_enable(void) __ksym __attribute__((weak));

static __always_inline void hold(void)
{
	if (bpf_preempt_disable)
		bpf_preempt_disable();
}

static __always_inline void let_go(void)
{
	if (bpf_preempt_enable)
		bpf_preempt_enable();
}

/* What a process, or a session, is in cniscope's PID namespace. False if it is not in there
 * or below: a cniscope inside a kind node sees the calls of that node alone. */
static __always_inline bool number_in_ours(struct pid *pid, struct upid *upid)
{
	unsigned int level = BPF_CORE_READ(pid, level);

	for (unsigned int i = 0; i < PID_LEVELS; i++) {
		if (i > level)
			break;
		/* numbers[] became a flexible array in 6.x; its offset is what counts. */
		bpf_probe_read_kernel(upid, sizeof(*upid),
				      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
					      i * sizeof(*upid));
		if (BPF_CORE_READ(upid, ns, ns.inum) == pid_ns)
			return true;
	}
	return false;
}

static __always_inline bool visible(struct task_struct *task, struct upid *upid)
{
	return number_in_ours(BPF_CORE_READ(task, group_leader, thread_pid), upid);
}

/* The task's number there; 0 if it has none. */
static __always_inline __u32 visible_pid(struct task_struct *task)
{
	struct upid upid;

	return visible(task, &upid) ? upid.nr : 0;
}

#define PIDTYPE_SID 3 /* include/linux/pid_types.h, since 4.19 */

static __always_inline struct pid *session_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, signal, pids[PIDTYPE_SID]);
}

/* Its session's number there, as /proc has it; 0 if it has none. */
static __always_inline __u32 visible_session(struct task_struct *task)
{
	struct upid upid;

	return number_in_ours(session_of(task), &upid) ? upid.nr : 0;
}

/* Its mount namespace, by inode number. */
static __always_inline __u32 mounts_of(struct task_struct *task)
{
	return BPF_CORE_READ(task, nsproxy, mnt_ns, ns.inum);
}

/* The namespaces of the first process there: the node's own. */
static __always_inline struct nsproxy *node_of(const struct upid *upid)
{
	return BPF_CORE_READ(upid, ns, child_reaper, nsproxy);
}

#define RIGHT(cap) (1ULL << (cap))
#define RIGHTS (RIGHT(CAP_NET_ADMIN) | RIGHT(CAP_SYS_ADMIN))

/* Which of RIGHTS the process has and its caller had, too, in whatever user namespace: root's
 * or ambient. A set-user-ID program, or one whose file has capabilities, has the environment
 * of somebody who has no such right. */
static __always_inline __u64 own_rights(const struct cred *cred)
{
	__u64 caps = 0, ambient = 0;

	bpf_core_read(&caps, sizeof(caps), &cred->cap_effective);
	if (BPF_CORE_READ(cred, uid.val)) {
		bpf_core_read(&ambient, sizeof(ambient), &cred->cap_ambient);
		caps &= ambient;
	}
	return caps & RIGHTS;
}

/* … in the initial user namespace. */
static __always_inline __u64 rights(struct task_struct *task)
{
	const struct cred *cred = task->cred;
	__u64 has = own_rights(cred);

	return has && BPF_CORE_READ(cred, user_ns, level) == 0 ? has : 0;
}

/* Whether the process may do anything on the node, or anything to its network:
 * CAP_SYS_ADMIN, or CAP_NET_ADMIN in the node's own network namespace, in the initial user
 * namespace. Of an agent that is, what it starts of CNI is believed. */
static __always_inline bool privileged_on_node(struct task_struct *task)
{
	const struct cred *cred = BPF_CORE_READ(task, cred);
	struct nsproxy *node;
	struct upid upid;
	__u64 caps = 0;

	bpf_core_read(&caps, sizeof(caps), &cred->cap_effective);
	if (!(caps & RIGHTS) || BPF_CORE_READ(cred, user_ns, level))
		return false;
	if (caps & RIGHT(CAP_SYS_ADMIN))
		return true;
	if (!visible(task, &upid))
		return false;
	node = node_of(&upid);
	return node && BPF_CORE_READ(task, nsproxy, net_ns) == BPF_CORE_READ(node, net_ns);
}

static __always_inline void key_of(struct task_struct *task, struct task_key *key)
{
	key->start = BPF_CORE_READ(task, group_leader, start_boottime);
	key->tgid = BPF_CORE_READ(task, tgid);
	key->pid = visible_pid(task);
}

/* What tells a network namespace from all others: its cookie, before 5.12 its inode number. */
static __always_inline __u64 cookie_of(struct net *net)
{
	if (bpf_core_field_exists(net->net_cookie))
		return BPF_CORE_READ(net, net_cookie);
	return BPF_CORE_READ(net, ns.inum);
}

static __always_inline void netns_of(struct task_struct *task, __u64 *cookie, __u32 *inum)
{
	/* Gone early in the exit of a thread that is not the last one. */
	struct net *net = BPF_CORE_READ(task, nsproxy, net_ns);

	if (!net)
		return;
	*inum = BPF_CORE_READ(net, ns.inum);
	*cookie = cookie_of(net);
}

/* The file behind a descriptor of the task; none if it has no such. */
static __always_inline struct file *file_of(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **files = BPF_CORE_READ(table, fd), *file = 0;

	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), files + fd);
	return file;
}

#define S_IFMT 0170000
#define S_IFCHR 0020000
#define S_IFIFO 0010000
#define S_IFSOCK 0140000

/* The inode of the pipe behind a descriptor; 0 if that is something else. */
static __always_inline __u64 pipe_of(struct task_struct *task, __u32 fd)
{
	struct file *file = file_of(task, fd);
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	if (!file || (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFIFO)
		return 0;
	return BPF_CORE_READ(inode, i_ino);
}

/* A delegate is given a pipe of its own to read from, and so may be the next image of a run;
 * what a plugin starts besides inherits the environment of the call, and mostly reads
 * nothing. The folder of a program is not known here, so this takes helpers in a pipeline,
 * too: the reader, which knows the run's own pipes, leaves theirs out. */
static __always_inline void pipes_of(struct task_struct *task, struct process *p)
{
	__u64 in = pipe_of(task, 0);

	if (!in || in == p->in_ino)
		return;
	p->in_ino = in;
	p->out_ino = pipe_of(task, 1);
}

/* What the image reads and writes. From a device (/dev/null, a terminal) no configuration
 * comes: that is as good as nothing. */
static __always_inline void standard_of(struct task_struct *task, struct exec_event *e)
{
	struct file *file = file_of(task, 0);
	struct inode *inode;

	e->h.stdin_dev = 0;
	e->stdin_ino = 0;
	e->stdout_ino = pipe_of(task, 1);
	if (!file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFCHR)
		return;
	e->stdin_ino = BPF_CORE_READ(inode, i_ino);
	e->h.stdin_dev = BPF_CORE_READ(inode, i_sb, s_dev);
}

/* What wait(2) reports of the process (kernel/exit.c, wait_task_zombie). */
static __always_inline __s32 wait_status(struct task_struct *task)
{
	struct signal_struct *signal = task->signal;

	if (BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT)
		return BPF_CORE_READ(signal, group_exit_code);
	return BPF_CORE_READ(task, group_leader, exit_code);
}
