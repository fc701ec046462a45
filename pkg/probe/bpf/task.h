/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What is read off a task. */
#pragma once

#define CAP_NET_ADMIN 12
#define CAP_SYS_ADMIN 21
#define SIGNAL_GROUP_EXIT 4 /* include/linux/sched/signal.h */
/* Deeper than any container in a container; MAX_PID_NS_LEVEL is 32. */
#define PID_LEVELS 8

/* Anybody can put CNI_COMMAND into an environment. Believed is who could change a
 * node's network anyway: CAP_NET_ADMIN or CAP_SYS_ADMIN in the initial user
 * namespace. The right must be the caller's own, root's or ambient: a set-user-ID
 * program, or one whose file has capabilities, has the environment of somebody who
 * has no such right. */
static __always_inline bool privileged(struct task_struct *task)
{
	const struct cred *cred = task->cred;
	const __u64 either = 1ULL << CAP_NET_ADMIN | 1ULL << CAP_SYS_ADMIN;
	__u64 caps = 0, ambient = 0;

	bpf_core_read(&caps, sizeof(caps), &cred->cap_effective);
	if (BPF_CORE_READ(cred, uid.val)) {
		bpf_core_read(&ambient, sizeof(ambient), &cred->cap_ambient);
		caps &= ambient;
	}
	if (!(caps & either))
		return false;
	return BPF_CORE_READ(cred, user_ns, level) == 0;
}

/* The task's number in cniscope's PID namespace; 0 if it is not in there or below:
 * a cniscope inside a kind node sees the calls of that node alone. */
static __always_inline __u32 visible_pid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, group_leader, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);

	for (unsigned int i = 0; i < PID_LEVELS; i++) {
		struct upid upid;

		if (i > level)
			break;
		/* numbers[] became a flexible array in 6.x; its offset is what counts. */
		bpf_probe_read_kernel(&upid, sizeof(upid),
				      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
					      i * sizeof(upid));
		if (BPF_CORE_READ(upid.ns, ns.inum) == pid_ns)
			return upid.nr;
	}
	return 0;
}

static __always_inline void key_of(struct task_struct *task, struct task_key *key)
{
	key->start = BPF_CORE_READ(task, group_leader, start_boottime);
	key->tgid = task->tgid;
	key->pid = visible_pid(task);
}

/* How far the scheduler's clock of this CPU is behind CLOCK_MONOTONIC: they tick
 * alike but slip apart, by NTP (at most 500 ppm) and by stolen time. A task's
 * exec_start is on the scheduler's clock and never in the future, so the smallest
 * distance seen lately is the slip. */
static __always_inline __s64 slip_of(struct task_struct *task, __s64 now)
{
	__u32 zero = 0;
	struct slip *s = bpf_map_lookup_elem(&slips, &zero);
	__s64 distance = now - (__s64)task->se.exec_start;

	if (!s)
		return distance;
	s->slip += (now - s->at) >> 11; /* 1/2048 = 488 ppm */
	if (!s->at || s->slip > distance)
		s->slip = distance;
	s->at = now;
	return s->slip;
}

static __always_inline __u64 cpu_time(struct task_struct *task)
{
	/* sum_exec_runtime is brought up to date by ticks and switches: a command of a
	 * few milliseconds may not have seen one. Add the slice it is in; more than
	 * two ticks (CONFIG_HZ=100) cannot be missing. */
	__s64 now = bpf_ktime_get_ns();
	__s64 slice = now - (__s64)task->se.exec_start - slip_of(task, now);

	if (slice < 0 || slice > 20000000)
		slice = 0;
	return task->se.sum_exec_runtime + slice;
}

static __always_inline void netns_of(struct task_struct *task, __u64 *cookie, __u32 *inum)
{
	/* Gone early in the exit of a thread that is not the last one. */
	struct net *net = BPF_CORE_READ(task, nsproxy, net_ns);

	if (!net)
		return;
	*inum = BPF_CORE_READ(net, ns.inum);
	if (bpf_core_field_exists(net->net_cookie))
		*cookie = BPF_CORE_READ(net, net_cookie);
}

static __always_inline void stdin_of(struct task_struct *task, struct exec_event *e)
{
	struct file **table = BPF_CORE_READ(task, files, fdt, fd), *file = 0;
	struct inode *inode;

	bpf_probe_read_kernel(&file, sizeof(file), table);
	if (!file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
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
