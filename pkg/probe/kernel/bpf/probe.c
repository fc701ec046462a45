// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* The life of every process of a CNI plugin's tree: forks, execs and exits. Three BTF
 * tracepoints, which cost system calls nothing. A root has CNI_COMMAND in its environment, is
 * trusted (believe.h), and has an untracked parent. All descendants of a root are tracked, which
 * is more than belongs to runs: pkg/tree decides their roles, and run_by_agent and pipes_of pass
 * whatever may matter. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "wire.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading. */
volatile const __u32 pid_ns = 0;     /* inode of cniscope's PID namespace … */
volatile const __u32 node_mounts = 0; /* … and of the mount namespace of its first process; */
volatile const __u32 node_net = 0;   /* … of its network namespace */
volatile const __u32 withheld = 0;   /* helpers may not read the kernel's memory */
volatile const __u32 rootless = 0;   /* whether runtimes in user namespaces are trusted */
volatile const __u32 share_max = 0;  /* processes of runs trusted without an anchor */
volatile const __u64 ring_high = 0;  /* bytes above which the reader is woken: a quarter */
volatile const __u64 quota = 0;      /* how far a root may be ahead of its quota, ns */
volatile const __s32 root_share = 0; /* part of a table for one root */

#define TYPED
#include "maps.h"
#include "scratch.h"
#include "task.h"
#include "pipes.h"
#include "standard.h"
#include "believe.h"
#include "cputime.h"
#include "habit.h"
#include "search.h"
#include "scan.h"
#include "start.h"
#include "context.h"

/* For bpf2go's Go types. */
const struct fork_event *unused_fork __attribute__((unused));
const struct thread_context *unused_context __attribute__((unused));
const struct exec_event *unused_exec __attribute__((unused));
const struct exit_event *unused_exit __attribute__((unused));
const struct call *unused_in_call __attribute__((unused));
const struct account *unused_account __attribute__((unused));
const enum kind *unused_kind __attribute__((unused));
const struct server *unused_server __attribute__((unused));
const struct watched *unused_watched __attribute__((unused));
const struct habit *unused_habit __attribute__((unused));
const struct anchor *unused_anchor __attribute__((unused));
const enum caller *unused_caller __attribute__((unused));
const enum belief *unused_belief __attribute__((unused));
const enum flag *unused_flag __attribute__((unused));
const enum counter *unused_counter __attribute__((unused));

/* False if there is no room, which is a loss of root. With BPF_NOEXIST also if the reader added
 * it. */
static __always_inline bool add(__u32 tgid, const struct process *p, const struct task_key *root, __u64 flags)
{
	long failed;

	if (!take_share(p)) {
		lose(LOST_SHARE, root);
		return false;
	}
	failed = track(tgid, p, flags);
	if (failed) {
		give_share_back(p);
		if (failed != -EEXIST)
			lose(LOST_TABLE, root);
		return false;
	}
	return true;
}

/* Untracked processes with a tracked parent, and their descendants, with their starts. They do
 * not become roots when they lose their parents. Without room here a process is merely not
 * tracked. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} outcasts SEC(".maps");

static __always_inline bool is_outcast(struct task_struct *task)
{
	__u32 *any = belief(OUTCASTS), tgid;
	__u64 *start;

	if (!any || !*any)
		return false;
	tgid = READ(task, tgid);
	start = bpf_map_lookup_elem(&outcasts, &tgid);
	return start && *start == READ(task, group_leader, start_boottime);
}

/* … but an agent's process may be a plugin. */
static __always_inline void cast_out(struct task_struct *child, bool agent)
{
	__u32 *any = belief(OUTCASTS), tgid = READ(child, tgid);
	__u64 start = READ(child, group_leader, start_boottime);
	long err;

	if (agent)
		return;
	err = bpf_map_update_elem(&outcasts, &tgid, &start, BPF_NOEXIST);
	if (err == -EEXIST) /* of an earlier process, whose exit was missed */
		bpf_map_update_elem(&outcasts, &tgid, &start, BPF_ANY);
	else if (!err && any)
		__sync_fetch_and_add(any, 1);
}

/* An outcast remains one until its last thread has exited. */
static __always_inline void forget_outcast(struct task_struct *task)
{
	__u32 *any = belief(OUTCASTS), tgid = READ(task, tgid);

	if (!any || !*any || READ(task, signal, live.counter) > 0)
		return;
	if (!bpf_map_delete_elem(&outcasts, &tgid))
		__sync_fetch_and_add(any, -1);
}

/* Adds the user stack of a forking process, unless its program may be a tenant's: of a server without
 * rights on the node, or in other mounts than those of the node or its server. It returns the record's size. */
static __always_inline __u64 add_stack(void *ctx, struct task_struct *task, const struct process *p, struct fork_event *e)
{
	__u64 bare = __builtin_offsetof(struct fork_event, stack);
	__u32 mounts = mounts_of(task);
	long n;

	e->mounts = 0;
	e->h.flags = 0;
	if (p->agent ? !p->on_node || mounts != p->mounts : mounts != node_mounts)
		return bare;
	e->h.flags = !p->agent || privileged_on_node(task) ? FLAG_TRUSTED : 0;
	n = bpf_get_stack(ctx, e->stack, sizeof(e->stack), BPF_F_USER_STACK);
	if (n <= 0 || n > sizeof(e->stack))
		return bare;
	e->mounts = mounts;
	e->execs = READ(task, self_exec_id);
	e->code_start = READ(task, mm, start_code);
	e->code_end = READ(task, mm, end_code);
	return bare + n;
}

SEC("tp_btf/sched_process_fork")
int HELD_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = parent->tgid, zero = 0;
	struct process *up, p = {};
	struct fork_event *e;
	__u64 size;

	slip_of(parent, bpf_ktime_get_ns());
	if (child->pid != child->tgid) /* a thread */
		return 0;
	up = bpf_map_lookup_elem(&processes, &tgid);
	if (!up) {
		if (is_outcast(parent))
			cast_out(child, false);
		fork_start(parent, child);
		return 0;
	}
	key_of(child, &p.self);
	p.parent = up->self;
	p.root = up->root;
	p.home = up->home;
	p.in_ino = up->in_ino;
	p.out_ino = up->out_ino;
	p.err_ino = up->err_ino;
	p.agent = up->agent;
	p.on_node = up->on_node;
	p.session = up->session;
	p.mounts = up->mounts;
	p.caller = up->caller;
	e = bpf_map_lookup_elem(&forks, &zero);
	if (!e)
		return 0;
	size = add_stack(ctx, parent, up, e);
	if (published(child, variable_of(child), &e->context)) {
		e->h.flags |= FLAG_CONTEXT;
		size = sizeof(*e);
	}
	e->h.kind = KIND_FORK;
	e->h.time = bpf_ktime_get_ns();
	p.since = e->h.time;
	/* An unreported process is not tracked: then its exec and exit are not reported. */
	if (!pays(&p.root, e->h.time, size, 2)) {
		lose(LOST_QUOTA, &p.root);
		cast_out(child, p.agent);
		return 0;
	}
	if (!add(child->tgid, &p, &p.root, BPF_ANY)) {
		cast_out(child, p.agent);
		return 0;
	}
	e->h.task = p.self;
	e->parent = p.parent;
	asm volatile("" : "+r"(size)); /* before Linux 5.11 the verifier forgets the bound of a spilled number */
	if (size <= sizeof(*e))
		put(e, size, &p.root, false);
	return 0;
}

static __always_inline struct process *new_root(struct task_struct *task, enum caller caller)
{
	__u32 tgid = task->tgid;
	struct process p = {};
	struct task_struct *parent = task->real_parent;
	__u32 above = READ(parent, tgid);
	struct process *up = bpf_map_lookup_elem(&processes, &above);

	/* A refused descendant does not become a root. */
	if ((up && !up->agent) || is_outcast(task))
		return 0;
	key_of(task, &p.self);
	p.root = p.self;
	p.caller = caller;
	p.parent.start = READ(parent, group_leader, start_boottime);
	p.parent.tgid = above;
	p.parent.pid = visible_pid(parent);
	/* The reader may have found and reported it in /proc since on_exec looked. */
	if (!add(tgid, &p, 0, BPF_NOEXIST))
		return 0;
	return bpf_map_lookup_elem(&processes, &tgid);
}

/* A server of plugins may run plugins itself: Multus' daemon, the runtime. These have a standard
 * input of their own, as delegated plugins have; inherited environments do not. They are trusted
 * if the server could do the same (privileged_on_node): not those of a pod's server that a
 * plugin happens to ask. */
static __always_inline bool run_by_agent(struct task_struct *task, const struct process *p)
{
	__u64 in = p->agent ? pipe_of(task, 0) : 0;

	return in && in != p->in_ino && (p->on_node || forked_by(task));
}

/* A process with its own session and mount namespace is a container, not a server's work for a
 * caller: the server may be the runtime (every OCI runtime calls setsid). A helper with only a
 * session of its own, and one that enters the host's mounts (nsenter), are work. From its next
 * image on the process is not tracked, which is reported as its exit. */
static __noinline int let_go_of(struct task_struct *task, __u32 tgid)
{
	struct process *p = bpf_map_lookup_elem(&processes, &tgid);
	struct exit_event e = {};
	struct task_key root;
	__u32 threads, weight;

	if (!p)
		return 0;
	root = p->root;
	threads = p->threads;
	weight = weight_of(p);
	e.h.kind = KIND_EXIT;
	e.h.time = bpf_ktime_get_ns();
	e.h.task = p->self;
	e.cpu = p->cpu + cpu_time(task);
	e.delay = p->delay + task->sched_info.run_delay;
	if (untrack(tgid, &root, threads, weight))
		put(&e, sizeof(e), &root, false);
	return 0;
}

/* Whether the environment of a tracked process is trusted, by its rights on the node, or for a
 * rootless run in any user namespace. */
static __always_inline bool trusts(struct task_struct *task, const struct process *p, __u64 has)
{
	const struct cred *cred = task->cred;
	__u64 caps = 0;

	if (p->caller != CALLER_ROOTLESS)
		return has;
	READ_WHOLE(&caps, cred, cap_effective);
	return caps & RIGHTS;
}

/* Handles an image of ours, or a possible one, which s describes. */
static __always_inline int ran(struct task_struct *task, struct process *p, struct scratch *s, __u64 has)
{
	struct exec_event *e = &s->event;
	bool root = false, trusted;
	enum caller caller;

	if (!p) {
		if (e->h.flags & FLAG_ENV_CUT)
			lose(CUT_ENV, 0);
		caller = s->found ? caller_of(task, has) : CALLER_NOBODY;
		if (!caller)
			return 0;
		p = new_root(task, caller);
		if (!p)
			return 0;
		root = true;
	} else if (has && s->found && run_by_agent(task, p)) {
		leave(&p->root, p->threads);
		p->root = p->self;
		p->threads = 0;
		join(&p->root);
		count_slot(task->tgid, -TALKS);
		p->agent = 0;
		p->caller = forked_by(task) ? CALLER_RUNTIME : CALLER_AGENT;
		root = true;
	}
	trusted = trusts(task, p, has);
	e->caller = p->caller;
	if (root)
		e->h.flags |= FLAG_ROOT;
	if (root && p->caller == CALLER_RUNTIME)
		note_sandbox(s);
	if (trusted)
		e->h.flags |= FLAG_TRUSTED;
	e->h.kind = KIND_EXEC;
	e->h.time = bpf_ktime_get_ns();
	e->h.task = p->self;
	e->parent = p->parent;
	e->started = READ(task, group_leader, start_time);
	e->cpu = p->cpu + cpu_time(task);
	e->delay = p->delay + task->sched_info.run_delay;
	e->netns_cookie = 0;
	e->netns_inum = 0;
	netns_of(task, &e->netns_cookie, &e->netns_inum);
	standard_of(task, e);
	e->asking = p->asking;
	e->asked = p->asked;
	p->asking = 0;
	p->asked = 0;
	if (root)
		p->home = e->netns_inum;
	if (trusted && s->found)
		pipes_of(task, p);

	__u64 size = __builtin_offsetof(struct exec_event, data) + s->off;

	if (size > sizeof(*e))
		size = sizeof(*e);
	send(e, size, p, root);
	return 0;
}

static __always_inline void end_thread(struct process *p, __u32 tid)
{
	struct account *a;

	if (bpf_map_delete_elem(&calls, &tid))
		return;
	a = bpf_map_lookup_elem(&accounts, &p->root);
	__sync_fetch_and_add(&p->threads, -1);
	if (a)
		__sync_fetch_and_add(&a->threads, -1);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, pid_t old, struct linux_binprm *bprm)
{
	__u32 tgid = task->tgid, zero = 0;
	struct process *p = bpf_map_lookup_elem(&processes, &tgid);
	struct start *start = p ? 0 : start_of(tgid);
	__u64 has = rights(task);
	struct scratch *s;
	bool maybe;

	if (!p)
		runs_by_habit(task);
	if (p && p->agent && visible_session(task) != p->session && mounts_of(task) != p->mounts) {
		let_go_of(task, tgid);
		p = 0;
	}
	if (p && old != task->pid) /* of another thread, which becomes the first */
		end_thread(p, old);
	/* Cheap tests first: this runs for every exec of the node. */
	if (!p && !start && !may_be_believed(task, has))
		return 0;
	s = bpf_map_lookup_elem(&scratches, &zero);
	if (!s)
		return 0;
	s->event.h.flags = 0;
	s->off = 0;
	/* Whether it is a plugin is in its environment. */
	maybe = p || may_be_plugin(task, s);
	if (!maybe && !start)
		start = begin_start(task);
	if (!maybe && !start)
		return 0;
	read_file(bprm, s);
	read_args(task, s);
	if (maybe)
		scan_env(task, s);
	if (maybe && !s->found && !p && !start)
		start = begin_start(task);
	hold(); /* not earlier: until Linux 6.15 a held program may not call a global function, as these do */
	if (start && !(maybe && s->found))
		run_start(task, start, &s->event, s->off);
	else
		ran(task, p, s, has);
	let_go();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int HELD_PROG(on_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct process *found = bpf_map_lookup_elem(&processes, &tgid), p;
	struct exit_event e = {};

	forget_outcast(task); /* a called server is followed all the same */
	exit_start(task);
	if (!found)
		return 0;
	end_thread(found, task->pid);
	__sync_fetch_and_add(&found->cpu, cpu_time(task));
	__sync_fetch_and_add(&found->delay, task->sched_info.run_delay);
	if (READ(task, signal, live.counter) > 0)
		return 0;
	p = *found;
	/* Two threads may both see that none is left; one of them deletes. */
	if (!untrack(tgid, &p.root, p.threads, weight_of(&p)))
		return 0;
	give_share_back(&p);
	e.h.kind = KIND_EXIT;
	e.h.time = bpf_ktime_get_ns();
	e.h.task = p.self;
	e.cpu = p.cpu;
	e.delay = p.delay;
	e.asking = p.asking;
	e.asked = p.asked;
	e.status = wait_status(task);
	netns_of(task, &e.netns_cookie, &e.netns_inum);
	put(&e, sizeof(e), &p.root, false);
	return 0;
}

/* Called for each task of the reader's PID namespace, if that is not the initial one: the reader
 * knows other PIDs than the kernel side. */
SEC("iter/task")
int on_number(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_key key = {};

	if (!task || task->pid != task->tgid)
		return 0;
	key_of(task, &key);
	if (key.pid)
		bpf_seq_write(ctx->meta->seq, &key, sizeof(key));
	return 0;
}
