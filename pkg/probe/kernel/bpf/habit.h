/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Programs that unfollowed servers of plugins run: these belong to no call. */
#pragma once

struct server {
	__u64 start; /* boot-time ns, cut to a tick */
	__u32 tgid;
	__u32 pad;
};

struct watched {
	struct server server;
	__u64 comm[2]; /* its last program, which it usually runs again */
};

#define SERVERS 1024

/* Known servers by slot of their number: of two in one slot one is not watched. The reader
 * maintains it. Exited ones are harmless. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SERVERS);
	__type(key, __u32);
	__type(value, struct watched);
} servers SEC(".maps");

struct habit {
	struct server server;
	__u64 comm[2]; /* its program */
};

/* The programs of each server. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct habit);
	__type(value, __u8);
} habits SEC(".maps");

static __always_inline struct watched *watched_of(__u32 tgid, __u64 start)
{
	__u32 slot = tgid % SERVERS;
	struct watched *w = bpf_map_lookup_elem(&servers, &slot);

	return w && w->server.tgid == tgid && start - w->server.start < TICK ? w : 0;
}

static __always_inline void note_habit(struct watched *w)
{
	struct habit h = {.server = w->server};
	__u8 is = 1;

	bpf_get_current_comm(h.comm, sizeof(h.comm));
	if (w->comm[0] == h.comm[0] && w->comm[1] == h.comm[1])
		return;
	w->comm[0] = h.comm[0];
	w->comm[1] = h.comm[1];
	if (!bpf_map_lookup_elem(&habits, &h))
		bpf_map_update_elem(&habits, &h, &is, BPF_ANY);
}

/* An unfollowed process runs a program: its parent, or a shell between, may be a server. */
static __always_inline void runs_by_habit(struct task_struct *task)
{
	struct task_struct *parent = task->real_parent, *above = parent->real_parent, *leader = parent->group_leader;
	struct watched *w = watched_of(parent->tgid, leader->start_boottime);

	if (!w) {
		leader = above->group_leader;
		w = watched_of(above->tgid, leader->start_boottime);
	}
	if (w)
		note_habit(w);
}
