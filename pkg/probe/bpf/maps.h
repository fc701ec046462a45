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
	__u8 agent;  /* 0 in a plugin's tree; 1 in that of a server it calls, 2 of one that calls */
	__u8 connected; /* it asked for a connection, of which the end will matter */
	__u8 on_node;   /* of a server: privileged_on_node */
	__u8 caller;    /* enum caller: why its run is believed */
	__u8 pad[4];
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

/* Counted first: whoever is in the table is never missed. */
static __always_inline long track(__u32 tgid, const struct process *p, __u64 flags)
{
	long failed;

	count_slot(tgid, 1);
	failed = bpf_map_update_elem(&processes, &tgid, p, flags);
	if (failed)
		count_slot(tgid, -1);
	return failed;
}

/* False if somebody else took it out. */
static __always_inline bool untrack(__u32 tgid)
{
	if (bpf_map_delete_elem(&processes, &tgid))
		return false;
	count_slot(tgid, -1);
	return true;
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
	COUNTERS = 5,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
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
	__u32 i = reason;
	__u64 *n = bpf_map_lookup_elem(&counters, &i), one = 1;

	if (n)
		(*n)++;
	if (!root)
		return;
	struct lost_key key = {.root = *root, .reason = reason};

	n = bpf_map_lookup_elem(&losses, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&losses, &key, &one, BPF_ANY);
}

/* The system call that a thread of a tracked process is in. */
struct call {
	__u64 start;    /* 0: it is in none */
	__u64 args[4];
	__u64 conn;     /* connect: the client's socket, until it is over */
	__u16 nr;
	__u8 class;
	__u8 held;      /* somebody had the lock when it began */
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

/* Waking the reader is the largest cost there is, so only the exec that starts a
 * run does it; the reader then polls while anything is tracked. A ring that fills
 * up faster than that wakes it, too. */
static __always_inline void send(void *event, __u64 size, const struct process *p, bool wake)
{
	__u64 flags = BPF_RB_NO_WAKEUP;

	if (wake || bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > ring_high)
		flags = BPF_RB_FORCE_WAKEUP;
	if (bpf_ringbuf_output(&events, event, size, flags))
		lose(LOST_RING, &p->root);
}
