/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What process tracking needs besides the shared maps. */
#pragma once

struct scratch {
	struct exec_event event;
	__u64 at, end;  /* the scan's position */
	__u32 off;      /* the next free byte of event.data */
	__u32 found;    /* CNI_COMMAND was seen */
	__u32 continued; /* the last piece was part of a longer variable */
	__u32 container; /* where CNI_CONTAINERID is in event.data; 0: nowhere */
};

/* An exec event exceeds a BPF stack. One per CPU is enough: only on_exec uses it, which never
 * runs twice at once on a CPU (task.h). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* So does a fork with its parent's stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fork_event);
} forks SEC(".maps");
