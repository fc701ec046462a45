/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Which processes are trusted as CNI plugins, and why: docs/trust.md. Any process can have
 * CNI_COMMAND, and privileges are not enough: a sidecar that changes its own pod's network has
 * CAP_NET_ADMIN in the initial user namespace. */
#pragma once

#define TICK 10000000 /* unit of starts in /proc/PID/stat, in ns */

/* A process of the container runtime. */
struct anchor {
	__u64 start; /* in ticks since boot */
	__u32 rootless;
	__u32 pad;
};

/* By PID in cniscope's namespace. The reader has up to about 32 of them (pkg/anchor, maxNamed),
 * and twice as many while it replaces them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct anchor);
} anchors SEC(".maps");

enum belief {
	ANCHORED = 0, /* whether the runtime is known */
	/* Processes of runs trusted without an anchor: added less removed by the kernel side,
	 * and removed by the reader. Each has one writer. */
	SHARE_TAKEN,
	SHARE_LEFT,
	OUTCASTS, /* their number */
	STARTING, /* … of processes that start sandboxes */
	BELIEFS,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BELIEFS);
	__type(key, __u32);
	__type(value, __u32);
} beliefs SEC(".maps");

static __always_inline __u32 *belief(enum belief which)
{
	__u32 i = which;

	return bpf_map_lookup_elem(&beliefs, &i);
}

static __always_inline bool anchored(void)
{
	__u32 *known = belief(ANCHORED);

	return known && *known;
}

static __always_inline bool in_host_mounts(struct task_struct *task)
{
	return node_mounts && mounts_of(task) == node_mounts;
}

/* A process of the host that could change cniscope also: root's, which owns these files, or one
 * with CAP_SYS_ADMIN. A service user with an ambient CAP_NET_ADMIN could not. */
static __always_inline bool of_host(struct task_struct *task, __u64 has)
{
	if (!has || !in_host_mounts(task))
		return false;
	return has & RIGHT(CAP_SYS_ADMIN) || !READ(task, cred, uid.val);
}

static __always_inline unsigned int pid_level(struct task_struct *task)
{
	return READ(task, group_leader, thread_pid, level);
}

/* The anchor that forked the process. An anchor may also adopt orphans, as PID 1 of their PID
 * namespace or as a subreaper. But containers have a session of their own (setsid, in every OCI
 * runtime), and usually another PID namespace, unlike a runtime's own children. */
static __always_inline struct anchor *forked_by(struct task_struct *task)
{
	struct task_struct *parent = READ(task, real_parent);
	__u32 pid = visible_pid(parent);
	struct anchor *anchor = pid ? bpf_map_lookup_elem(&anchors, &pid) : 0;

	if (!anchor || READ(parent, group_leader, start_boottime) / TICK != anchor->start)
		return 0;
	if (pid_level(task) != pid_level(parent) || session_of(task) != session_of(parent))
		return 0;
	return anchor;
}

/* Privileged in the user namespace of the rootless runtime that forked it. */
static __always_inline bool run_rootless(struct task_struct *task, const struct anchor *anchor)
{
	struct task_struct *parent = READ(task, real_parent);
	const struct cred *cred = task->cred;
	__u64 caps = 0;

	READ_WHOLE(&caps, cred, cap_effective);
	return anchor->rootless && caps & RIGHTS &&
	       READ(cred, user_ns) == READ(parent, cred, user_ns);
}

/* A cheap test that excludes most processes of containers. has are the process's rights. */
static __always_inline bool may_be_believed(struct task_struct *task, __u64 has)
{
	if ((!has && !rootless) || !visible_pid(task))
		return false;
	if (of_host(task, has))
		return true;
	if (has & RIGHT(CAP_SYS_ADMIN) && !anchored())
		return true;
	return forked_by(task);
}

/* Why a process that no run forked is trusted. */
static __always_inline enum caller caller_of(struct task_struct *task, __u64 has)
{
	struct anchor *anchor = forked_by(task);

	if (anchor && has)
		return CALLER_RUNTIME;
	if (visible_pid(task) && of_host(task, has))
		return CALLER_HOST;
	if (has & RIGHT(CAP_SYS_ADMIN) && !anchored())
		return CALLER_PRIVILEGED;
	if (rootless && anchor && run_rootless(task, anchor))
		return CALLER_ROOTLESS;
	return CALLER_NOBODY;
}

/* Processes trusted without an anchor have a share of the table, so that they cannot displace
 * the runtime's plugins. */
static __always_inline bool has_share(const struct process *p)
{
	return p->caller >= CALLER_HOST;
}

/* False if the share is full. */
static __always_inline bool take_share(const struct process *p)
{
	__u32 *taken, *left;

	if (!has_share(p))
		return true;
	taken = belief(SHARE_TAKEN);
	left = belief(SHARE_LEFT);
	if (!taken || !left || (__s32)(*taken - *left) >= (__s32)share_max)
		return false;
	__sync_fetch_and_add(taken, 1);
	return true;
}

static __always_inline void give_share_back(const struct process *p)
{
	__u32 *taken = belief(SHARE_TAKEN);

	if (has_share(p) && taken)
		__sync_fetch_and_add(taken, -1);
}
