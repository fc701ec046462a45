/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What servers that plugins call run while nobody follows them: that is done for no call. */
#pragma once

struct server {
	__u64 start; /* in ticks since boot */
	__u32 tgid;
	__u32 pad;
};

#define SERVERS 1024

/* Those that are known, each in the place of its number: of two that have the same one is not watched.
 * The reader keeps it. One that is gone harms nobody, since it runs nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVERS);
	__type(key, __u32);
	__type(value, struct server);
} servers SEC(".maps");

struct habit {
	struct server server;
	__u8 comm[16]; /* of what it ran */
};

/* How often each ran what. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct habit);
	__type(value, __u64);
} habits SEC(".maps");

static __always_inline struct server *server_of(struct task_struct *task, __u32 tgid)
{
	__u32 slot = tgid % SERVERS;
	struct server *s = bpf_map_lookup_elem(&servers, &slot);

	if (!s || s->tgid != tgid || s->start != BPF_CORE_READ(task, group_leader, start_boottime) / TICK)
		return 0;
	return s;
}

static __noinline int note_habit(struct server *s)
{
	struct habit h = {};
	__u64 *n, one = 1;

	if (!s)
		return 0;
	h.server = *s;
	bpf_get_current_comm(h.comm, sizeof(h.comm));
	n = bpf_map_lookup_elem(&habits, &h);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&habits, &h, &one, BPF_ANY);
	return 0;
}

/* A process that nobody follows runs a program: a server may have started it, or a shell of a server's. */
static __always_inline void runs_by_habit(struct task_struct *task)
{
	struct task_struct *parent = task->real_parent, *above = parent->real_parent;
	struct server *s = server_of(parent, parent->tgid);

	if (!s)
		s = server_of(above, above->tgid);
	if (s)
		note_habit(s);
}
