/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
#pragma once

/* A process of a plugin's tree. */
struct process {
	struct task_key self;
	struct task_key parent;
	struct task_key root; /* the run's first process */
	__u64 cpu, delay;     /* of its threads that are gone */
};

/* Processes of all plugin trees, by tgid. Sized by [limits] processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct process);
} processes SEC(".maps");

/* Sized by [probe] ring. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} events SEC(".maps");

struct scratch {
	struct exec_event event;
	__u64 at, end;  /* the scan's place in the environment */
	__u32 off;      /* the next free byte of event.data */
	__u32 found;    /* CNI_COMMAND was seen */
	__u32 continued; /* the last piece was the head of a longer variable */
};

/* An exec event is larger than a BPF stack. Tracepoint programs are not preempted
 * by themselves, so one for each CPU is enough. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

struct slip {
	__s64 slip;
	__s64 at;
};

/* See task.h, slip_of. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slip);
} slips SEC(".maps");

enum counter {
	LOST_RING = 0,  /* the ring buffer was full */
	LOST_TABLE = 1, /* the process table was full */
	CUT_ENV = 2,    /* an environment was too long to be searched to its end */
	COUNTERS = 3,
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
