/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The start of a sandbox: the runtime's shim and its descendants, until the first program runs. */
#pragma once

#define ID_PART 16 /* of a container's id */
#define START_MAX 300000000000ULL
#define SHIM_DEPTH 1

struct sandbox {
	__u8 id[ID_PART];
} __attribute__((aligned(8)));

struct start {
	struct task_key self, parent, root;
	struct sandbox of;
	__u64 cpu, delay, since;
	__u32 mounts;
	__u8 depth;
	__u8 told; /* its program was reported */
	__u16 pad;
};

/* Sandboxes of the runtime's plugins, and whether their first program ran. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct sandbox);
	__type(value, __u8);
} sandboxes SEC(".maps");

/* Beside the tracked processes: their system calls are not traced. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32);
	__type(value, struct start);
} starts SEC(".maps");

static __always_inline struct start *start_of(__u32 tgid)
{
	__u32 *any = belief(STARTING);

	return any && *any ? bpf_map_lookup_elem(&starts, &tgid) : 0;
}

static __always_inline struct start *add_start(__u32 tgid, const struct start *s)
{
	__u32 *any = belief(STARTING);
	long failed;

	if (!any)
		return 0;
	failed = bpf_map_update_elem(&starts, &tgid, s, BPF_NOEXIST);
	if (failed) {
		if (failed != -EEXIST)
			lose(LOST_STARTS, 0);
		return 0;
	}
	__sync_fetch_and_add(any, 1);
	return bpf_map_lookup_elem(&starts, &tgid);
}

static __always_inline bool drop_start(__u32 tgid)
{
	__u32 *any = belief(STARTING);

	if (!any || bpf_map_delete_elem(&starts, &tgid))
		return false;
	__sync_fetch_and_add(any, -1);
	return true;
}

/* A runtime's plugin names its sandbox. */
static __always_inline void note_sandbox(const struct scratch *s)
{
	__u32 at = s->container;
	struct sandbox of;
	__u8 no = 0;

	if (!at || at > FILE_MAX + ARGS_MAX + ENV_ROOM)
		return;
	__builtin_memcpy(of.id, &s->event.data[at + sizeof("CNI_CONTAINERID")], ID_PART);
	bpf_map_update_elem(&sandboxes, &of, &no, BPF_NOEXIST);
}

static __always_inline bool directory_of(struct task_struct *task, struct sandbox *of)
{
	const void *name = READ(task, fs, pwd.dentry, d_name.name);

	if (!bpf_rdonly_cast)
		return !withheld && !bpf_probe_read_kernel(of, sizeof(*of), name);
	((__u64 *)of)[0] = CAST(name, qstr)->hash_len; /* any two words */
	((__u64 *)of)[1] = (__u64)CAST(name, qstr)->name;
	return true;
}

/* A child of the runtime in the directory of such a sandbox, whose name is its id. */
static __noinline struct start *begin_start(struct task_struct *task)
{
	struct task_struct *parent = task->real_parent;
	struct start s = {.since = bpf_ktime_get_ns()};
	__u8 *over;

	if (!forked_by(task) || !directory_of(task, &s.of))
		return 0;
	over = bpf_map_lookup_elem(&sandboxes, &s.of);
	if (!over || *over)
		return 0;
	key_of(task, &s.self);
	key_of(parent, &s.parent);
	s.root = s.self;
	s.mounts = mounts_of(task);
	return add_start(task->tgid, &s);
}

static __always_inline void fork_start(struct task_struct *parent, struct task_struct *child)
{
	struct start *up = start_of(parent->tgid), s;
	__u8 *over;

	if (!up)
		return;
	over = bpf_map_lookup_elem(&sandboxes, &up->of);
	if (up->depth <= SHIM_DEPTH && ((over && *over) || bpf_ktime_get_ns() - up->since > START_MAX)) {
		drop_start(parent->tgid);
		return;
	}
	s = *up;
	key_of(child, &s.self);
	if (up->told)
		s.parent = up->self;
	s.cpu = s.delay = s.told = 0;
	s.depth += s.depth < 255;
	add_start(child->tgid, &s);
}

/* The sandbox's first program leads a session in mounts of its own. */
static __always_inline bool is_first(struct task_struct *task, const struct start *s)
{
	return mounts_of(task) != s->mounts && visible_session(task) == visible_pid(task);
}

static __always_inline void run_start(struct task_struct *task, struct start *s, struct exec_event *e, __u32 len)
{
	__u64 size = __builtin_offsetof(struct exec_event, data) + len;
	__u8 yes = 1;

	if (is_first(task, s)) {
		bpf_map_update_elem(&sandboxes, &s->of, &yes, BPF_EXIST);
		drop_start(task->tgid);
		return;
	}
	e->h.kind = KIND_EXEC;
	e->h.flags = (e->h.flags & FLAG_SCRIPT) | FLAG_START | (s->depth ? 0 : FLAG_ROOT);
	e->h.time = bpf_ktime_get_ns();
	e->h.task = s->self;
	e->parent = s->parent;
	e->started = READ(task, group_leader, start_time);
	e->env_len = 0;
	standard_of(task, e);
	s->told = 1;
	if (size > sizeof(*e))
		size = sizeof(*e);
	put(e, size, &s->root, false);
}

static __always_inline void exit_start(struct task_struct *task)
{
	struct start *found = start_of(task->tgid), s;
	struct exit_event e = {};

	if (!found)
		return;
	__sync_fetch_and_add(&found->cpu, cpu_time(task));
	__sync_fetch_and_add(&found->delay, task->sched_info.run_delay);
	if (READ(task, signal, live.counter) > 0)
		return;
	s = *found;
	if (!drop_start(task->tgid) || !s.told)
		return;
	e.h.kind = KIND_EXIT;
	e.h.flags = FLAG_START;
	e.h.time = bpf_ktime_get_ns();
	e.h.task = s.self;
	e.cpu = s.cpu;
	e.delay = s.delay;
	e.status = wait_status(task);
	put(&e, sizeof(e), &s.root, false);
}
