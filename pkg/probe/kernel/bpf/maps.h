/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#pragma once

/* A process of a plugin's tree. */
struct process {
	struct task_key self;
	struct task_key parent;
	struct task_key root; /* the run's first process */
	__u64 cpu, delay;     /* of its exited threads */
	__u64 entered;        /* last entered network namespace */
	__u64 in_ino, out_ino, err_ino; /* the run's pipes; 0 if there is none */
	__u32 home;           /* inode number of the network namespace in which its run began */
	__u32 bytes;          /* read from it, see BYTES_MAX */
	__u32 threads;        /* its threads in calls */
	__u8 agent;  /* 0 in a plugin's tree; 1 in that of a server that it calls, 2 of one that that calls */
	__u8 connected; /* it connected, and the end will matter */
	__u8 on_node;   /* of a server: privileged_on_node */
	__u8 caller;    /* enum caller: why its run is trusted */
	__u32 session;  /* of a server and what it runs: see visible_session, … */
	__u32 mounts;   /* … and mounts_of */
	__u64 since;    /* start of following, for a server or its process */
	__u64 asking;   /* duration of unreported queries of its image in ns, see merely_asks */
	__u32 asked;    /* … and their number */
	__u32 said;     /* written to standard error, see SAID_MAX */
};

/* Processes of all plugin trees, by tgid. Sized by [limits] processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct process);
} processes SEC(".maps");

/* Counts of processes by the last bits of their tgid: a quick no for other processes, nearly all
 * system calls of the node. The upper half counts those that talk: agents, and processes that
 * connected. The reader does not count down; a high number only costs a lookup. */
#define SLOTS 4096
#define TALKS (1U << 16)

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} slots SEC(".maps");

static __always_inline void count_slot(__u32 tgid, __u32 by)
{
	__u32 slot = tgid % SLOTS, *n = bpf_map_lookup_elem(&slots, &slot);

	if (n)
		__sync_fetch_and_add(n, by);
}

static __always_inline __u32 weight_of(const struct process *p)
{
	return 1 + (p->agent ? TALKS : 0) + (p->connected ? TALKS : 0);
}

static __always_inline __u32 may_be_tracked(__u32 tgid)
{
	__u32 slot = tgid % SLOTS, *n = bpf_map_lookup_elem(&slots, &slot);

	return n ? *n : 0;
}

/* Sized by [probe] ring. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

enum counter {
	LOST_RING = 0,  /* the ring buffer was full */
	LOST_TABLE = 1, /* the process table was full */
	CUT_ENV = 2,    /* an environment exceeded the searched length */
	LOST_CALLS = 3, /* more threads in system calls than are followed */
	LOST_SHARE = 4, /* processes trusted without an anchor exceeded their share */
	LOST_QUOTA = 5, /* a root exceeded its quota */
	LOST_CONNS = 6, /* too many connections */
	LOST_STREAMS = 7, /* too many streams of servers */
	LOST_STARTS = 8, /* more programs of sandboxes' starts than fit */
	COUNTERS = 9,
};

/* Mapped by the reader, which reads them twenty times a second. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, COUNTERS);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct lost_key {
	struct task_key root;
	__u32 reason;
	__u32 pad;
};

/* Losses by run; read and emptied when a counter changed. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, struct lost_key);
	__type(value, __u64);
} losses SEC(".maps");

static __always_inline void lose(enum counter reason, const struct task_key *root)
{
	struct lost_key key = {.reason = reason};
	__u32 i = reason;
	__u64 *n, one = 1;

	/* By root first: the reader reads in the opposite order, so a concurrent loss always has
	 * its root. */
	if (root) {
		key.root = *root;
		n = bpf_map_lookup_elem(&losses, &key);
		if (!n && bpf_map_update_elem(&losses, &key, &one, BPF_NOEXIST))
			n = bpf_map_lookup_elem(&losses, &key); /* of another CPU */
		if (n)
			__sync_fetch_and_add(n, 1);
	}
	n = bpf_map_lookup_elem(&counters, &i);
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* A followed thread's current system call, and its wait. */
struct call {
	__u64 start;    /* 0: no call */
	__u64 args[4];
	__u64 conn;     /* connect: the client's socket, until the end */
	__u64 since;    /* start of the wait; 0: none */
	__u64 until;    /* latest end of the wait; 0: unknown */
	__u16 nr;
	__u8 class;
	__u8 pad;
	__u32 tgid;     /* thread numbers are reused */
};

/* By thread, as long as it lives: adding and removing at every call would be half of the hooks'
 * time. The reader removes leftovers of exited threads. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct call);
} calls SEC(".maps");

/* A root's use of shared resources. A plugin's children have its root, so forking gains nothing.
 * A new account begins empty. */
struct account {
	__u64 whole;     /* when its quota is full again, monotonic ns */
	__u64 mark;      /* a position in the ring */
	__u32 before, since; /* bytes that it sent before the mark, possibly unread, and since */
	__s32 processes; /* its processes in the table */
	__s32 threads;   /* … in calls */
	__s32 conns;     /* open connections */
	__s32 streams;   /* of servers, see stream.h */
};

/* By the root. Each has at least one process in the table, so there is room for all. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct task_key);
	__type(value, struct account);
} accounts SEC(".maps");

static __always_inline void leave(const struct task_key *root, __s32 threads)
{
	struct account *a = bpf_map_lookup_elem(&accounts, root);

	if (!a)
		return;
	__sync_fetch_and_add(&a->threads, -threads);
	__sync_fetch_and_add(&a->processes, -1);
	if (a->processes <= 0)
		bpf_map_delete_elem(&accounts, root);
}

static __always_inline void join(const struct task_key *root)
{
	struct account first = {.processes = 1}, *a;

	if (!bpf_map_update_elem(&accounts, root, &first, BPF_NOEXIST))
		return;
	a = bpf_map_lookup_elem(&accounts, root);
	if (a)
		__sync_fetch_and_add(&a->processes, 1);
}

/* Adds a process to the table, unless its root's share is full. It counts first, so that a
 * process in the table is never missed. */
static __always_inline long track(__u32 tgid, const struct process *p, __u64 flags)
{
	struct account *a = bpf_map_lookup_elem(&accounts, &p->root);
	long failed;

	if (a && a->processes >= root_share)
		return -1;
	count_slot(tgid, weight_of(p));
	failed = bpf_map_update_elem(&processes, &tgid, p, flags);
	if (failed) {
		count_slot(tgid, -weight_of(p));
		return failed;
	}
	if (a)
		__sync_fetch_and_add(&a->processes, 1);
	else
		join(&p->root);
	return 0;
}

/* False if another program, or the reader, removed it. */
static __always_inline bool untrack(__u32 tgid, const struct task_key *root, __u32 threads, __u32 weight)
{
	if (bpf_map_delete_elem(&processes, &tgid))
		return false;
	count_slot(tgid, -weight);
	leave(root, threads);
	return true;
}

/* A root's cost per byte in the ring: 4 MiB a second. A record costs more than its bytes, for
 * the reader's time. libnftables' 1,350 queries for a pod cost about 460 KB. */
#define BYTE_NS 238
#define RECORD_BYTES 128

/* A root's minimum in a ring of any size: an ordinary plugin's records between two reads. Also
 * in Quota of accounts_linux.go. */
#define ROOM_MIN (32 << 10)

/* … and with two thirds of the calls' part unread: records of a root that sends about 64 KiB a
 * second. */
#define ROOM_KEPT (8 << 10)

/* Whether a root's unread records leave it room: half of the free part of the calls' three
 * quarters. One busy root gets a quarter of the ring; eight get 8 % each and leave 15 % to
 * others, however slow the reader is. The mark moves when everything before it was read. */
static __always_inline bool has_room(struct account *a, __u64 size, __u64 shares)
{
	__u64 used = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	__u64 least = used > 2 * ring_high ? ROOM_KEPT : ROOM_MIN;
	__u64 room = used < 3 * ring_high ? (3 * ring_high - used) / 2 : 0;

	if (bpf_ringbuf_query(&events, BPF_RB_CONS_POS) >= a->mark) {
		a->before = a->since;
		a->since = 0;
		a->mark = bpf_ringbuf_query(&events, BPF_RB_PROD_POS);
	}
	if (room > ring_high)
		room = ring_high;
	if (room < least)
		room = least;
	if (a->before + a->since + size > shares * room)
		return false;
	__sync_fetch_and_add(&a->since, size);
	return true;
}

/* Lets a root pay for a record if it can: a token bucket that only stores when it will be full.
 * Concurrent CPUs may let one record pass. */
static __always_inline bool pays(const struct task_key *root, __u64 now, __u64 size, __u64 shares)
{
	__u64 cost = (size + RECORD_BYTES) * BYTE_NS, ahead = shares * quota, whole;
	struct account *a = bpf_map_lookup_elem(&accounts, root);

	if (!a) {
		struct account bare = {.whole = now + ahead};

		if (!bpf_map_update_elem(&accounts, root, &bare, BPF_NOEXIST))
			return true;
		a = bpf_map_lookup_elem(&accounts, root); /* of another CPU */
		if (!a)
			return false;
	}
	if (!has_room(a, size, shares))
		return false;
	whole = a->whole;
	if (whole < now) {
		a->whole = now + cost;
		return true;
	}
	if (whole + cost > now + ahead)
		return false;
	__sync_fetch_and_add(&a->whole, cost);
	return true;
}

/* Waking the reader is the largest cost, so only the exec of a run and a filling ring do it;
 * otherwise the reader polls. The last quarter of the ring is for the life of processes, and the
 * last eighth for their exits, which end everything else. */
static __always_inline bool put(void *event, __u64 size, const struct task_key *root, bool wake)
{
	__u64 flags = BPF_RB_NO_WAKEUP, used = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
	__u8 kind = ((struct head *)event)->kind;
	__u64 most = kind == KIND_EXIT ? 4 * ring_high : kind == KIND_CALL ? 3 * ring_high : 7 * ring_high / 2;

	if (wake || used > ring_high / 2)
		flags = BPF_RB_FORCE_WAKEUP;
	if (used <= most && !bpf_ringbuf_output(&events, event, size, flags))
		return true;
	lose(LOST_RING, root);
	return false;
}

/* … if its root can pay. Forks and execs have an additional quota. */
static __always_inline bool send(void *event, __u64 size, const struct process *p, bool wake)
{
	struct head *h = event;

	if (!p->root.tgid || pays(&p->root, h->time, size, h->kind == KIND_CALL ? 1 : 2))
		return put(event, size, &p->root, wake);
	lose(LOST_QUOTA, &p->root);
	return false;
}
