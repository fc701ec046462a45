/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#pragma once

/* A process of a plugin's tree. */
struct process {
	struct task_key self;
	struct task_key parent;
	struct task_key root; /* the run's first process */
	__u64 cpu, delay;     /* of its threads that are gone */
	__u64 entered;        /* the one it was last seen to enter */
	__u64 in_ino, out_ino; /* the pipes its run is spoken to by; 0 if there is none */
	__u32 home;           /* the network namespace its run began in, by inode number: it is in use as long */
	__u32 bytes;          /* that were read out of it, see BYTES_MAX */
	__u32 threads;        /* of it that are in calls */
	__u8 agent;  /* 0 in a plugin's tree; 1 in that of a server it calls, 2 of one that calls */
	__u8 connected; /* it asked for a connection, of which the end will matter */
	__u8 on_node;   /* of a server: privileged_on_node */
	__u8 caller;    /* enum caller: why its run is believed */
	__u32 session;  /* of a server and what it runs: see visible_session, … */
	__u32 mounts;   /* … and mounts_of */
	__u64 since;    /* it is followed, if it is a server or one of a server's */
	__u64 asking;   /* ns that its image's questions took which were not told, see merely_asks */
	__u32 asked;    /* … how many they were */
	__u32 pad;
};

/* Processes of all plugin trees, by tgid. Sized by [limits] processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct process);
} processes SEC(".maps");

/* A quick no for the processes that are not in there, which is nearly every system call
 * of the node: how many are in there by the last bits of their tgid. Where the reader
 * changes the table it is not counted down; too high a number only costs a look into the
 * table. */
#define SLOTS 4096

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

static __always_inline bool may_be_tracked(__u32 tgid)
{
	__u32 slot = tgid % SLOTS, *n = bpf_map_lookup_elem(&slots, &slot);

	return n && *n;
}

/* Sized by [probe] ring. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

enum counter {
	LOST_RING = 0,  /* the ring buffer was full */
	LOST_TABLE = 1, /* the process table was full */
	CUT_ENV = 2,    /* an environment was too long to be searched to its end */
	LOST_CALLS = 3, /* more threads in system calls than are followed */
	LOST_SHARE = 4, /* what is believed without an anchor had its share of the table */
	LOST_QUOTA = 5, /* a root had more to tell than it may */
	LOST_CONNS = 6, /* more connections than are followed */
	LOST_STREAMS = 7, /* more streams of servers than are followed */
	COUNTERS = 8,
};

/* Mapped by the reader, which looks at them twenty times a second: that takes no system call. */
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

/* Which runs lost what; read and emptied when a counter moved. */
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

	/* By root first: the reader, which looks in the opposite order, never finds a loss that
	 * is nobody's because it comes in between. */
	if (root) {
		key.root = *root;
		n = bpf_map_lookup_elem(&losses, &key);
		if (n)
			__sync_fetch_and_add(n, 1);
		else
			bpf_map_update_elem(&losses, &key, &one, BPF_ANY);
	}
	n = bpf_map_lookup_elem(&counters, &i);
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* The system call that a thread of a tracked process is in, and its wait. */
struct call {
	__u64 start;    /* 0: it is in none */
	__u64 args[4];
	__u64 conn;     /* connect: the client's socket, until it is over */
	__u64 since;    /* it waits; 0: it does not */
	__u64 until;    /* when the wait ends in any case; 0: never, or not known */
	__u16 nr;
	__u8 class;
	__u8 pad;
	__u32 tgid;     /* thread numbers are given again */
};

/* By thread, for as long as it lives: to put it in and take it out at every call would be
 * half of all the time that the hooks take. What the exit of a thread leaves is taken
 * away by the reader. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct call);
} calls SEC(".maps");

/* What one root has of what all share. Whoever a plugin starts has its root, so forking
 * gains nothing; and where an account is missing it begins with nothing left. */
struct account {
	__u64 whole;     /* when its quota is whole again, monotonic ns */
	__u64 mark;      /* a place in the ring */
	__u32 before, since; /* bytes that it sent before that, as far as they may be unread, and since */
	__s32 processes; /* below it in the table */
	__s32 threads;   /* … in calls */
	__s32 conns;     /* connections that are not over */
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

/* Puts a process into the table, unless its root has its share of that. Counted first:
 * whoever is in the table is never missed. */
static __always_inline long track(__u32 tgid, const struct process *p, __u64 flags)
{
	struct account *a = bpf_map_lookup_elem(&accounts, &p->root);
	long failed;

	if (a && a->processes >= root_share)
		return -1;
	count_slot(tgid, 1);
	failed = bpf_map_update_elem(&processes, &tgid, p, flags);
	if (failed) {
		count_slot(tgid, -1);
		return failed;
	}
	if (a)
		__sync_fetch_and_add(&a->processes, 1);
	else
		join(&p->root);
	return 0;
}

/* False if somebody else took it out. */
static __always_inline bool untrack(__u32 tgid, const struct task_key *root, __u32 threads)
{
	if (bpf_map_delete_elem(&processes, &tgid))
		return false;
	count_slot(tgid, -1);
	leave(root, threads);
	return true;
}

/* What a byte in the ring costs a root: 4 MiB a second. And what a record costs beyond its
 * own bytes, which is the reader's time. libnftables' 1,350 queries for a pod cost some 460 KB. */
#define BYTE_NS 238
#define RECORD_BYTES 128

/* What a root may have in the ring however small that is: what an ordinary plugin has to tell
 * between two readings. Quota in accounts_linux.go has it, too. */
#define ROOM_MIN (32 << 10)

/* … and while two thirds of what calls may fill are unread: what a root has to tell between two readings that sends
 * little, some 64 KiB a second. */
#define ROOM_KEPT (8 << 10)

/* Whether what a root has in the ring unread leaves room for more of its own: half of what is free of the three
 * quarters that calls may fill. So one busy root has a quarter of the ring, eight have 8 % each and leave 15 % to
 * those that send little, however slowly it is read. Whenever all before the mark has been read, the mark is set anew. */
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

/* Whether a root can pay for a record, and then it has: a token bucket of which only the
 * time is kept when it will be full again. Where CPUs meet, one of them may be let off. */
static __always_inline bool pays(const struct task_key *root, __u64 now, __u64 size, __u64 shares)
{
	__u64 cost = (size + RECORD_BYTES) * BYTE_NS, ahead = shares * quota, whole;
	struct account *a = bpf_map_lookup_elem(&accounts, root);

	if (!a) {
		struct account bare = {.whole = now + ahead};

		return !bpf_map_update_elem(&accounts, root, &bare, BPF_NOEXIST);
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

/* Waking the reader is the largest cost there is, so only the exec that starts a
 * run does it; the reader then polls while anything is tracked. A ring that fills
 * up faster than that wakes it, too.
 *
 * The last quarter of the ring is for the life of processes, and the last eighth for their
 * ends: these bring everything else to its end. */
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

/* … if its root can pay for it. Forks and execs have a quota of their own beyond that of
 * all others. */
static __always_inline bool send(void *event, __u64 size, const struct process *p, bool wake)
{
	struct head *h = event;

	if (!p->root.tgid || pays(&p->root, h->time, size, h->kind == KIND_CALL ? 1 : 2))
		return put(event, size, &p->root, wake);
	lose(LOST_QUOTA, &p->root);
	return false;
}
