/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What the life of processes needs besides the maps that are shared. */
#pragma once

struct scratch {
	struct exec_event event;
	__u64 at, end;  /* the scan's place in the environment */
	__u32 off;      /* the next free byte of event.data */
	__u32 found;    /* CNI_COMMAND was seen */
	__u32 continued; /* the last piece was the head of a longer variable */
};

/* An exec event is larger than a BPF stack. One for each CPU is enough: only on_exec uses it,
 * which the kernel does not run again on a CPU where it is under way (task.h). */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");
