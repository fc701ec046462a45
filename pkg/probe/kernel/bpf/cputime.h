/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* How long a task ran. */
#pragma once

struct slip {
	__s64 slip;
	__s64 at;
};

/* See slip_of. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slip);
} slips SEC(".maps");

/* How far the scheduler's clock of this CPU is behind CLOCK_MONOTONIC: they tick
 * alike but slip apart, by NTP (at most 500 ppm) and by stolen time. A task's
 * exec_start is on the scheduler's clock and never in the future, so the smallest
 * distance seen lately is the slip. */
static __always_inline __s64 slip_of(struct task_struct *task, __s64 now)
{
	__u32 zero = 0;
	struct slip *s = bpf_map_lookup_elem(&slips, &zero);
	__s64 distance = now - (__s64)task->se.exec_start;

	if (!s)
		return distance;
	s->slip += (now - s->at) >> 11; /* 1/2048 = 488 ppm */
	if (!s->at || s->slip > distance)
		s->slip = distance;
	s->at = now;
	return s->slip;
}

static __always_inline __u64 cpu_time(struct task_struct *task)
{
	/* sum_exec_runtime is brought up to date by ticks and switches: a command of a
	 * few milliseconds may not have seen one. Add the slice it is in; more than
	 * two ticks (CONFIG_HZ=100) cannot be missing. */
	__s64 now = bpf_ktime_get_ns();
	__s64 slice = now - (__s64)task->se.exec_start - slip_of(task, now);

	if (slice < 0 || slice > 20000000)
		slice = 0;
	return task->se.sum_exec_runtime + slice;
}
