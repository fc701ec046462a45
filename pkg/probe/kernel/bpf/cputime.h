/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* CPU time of a task. */
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

/* How far this CPU's scheduler clock is behind CLOCK_MONOTONIC: they drift by NTP (up to 500
 * ppm) and by stolen time. A task's exec_start is on the scheduler's clock and never in the
 * future, so the smallest recent difference is the slip. */
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
	/* Only ticks and switches update sum_exec_runtime, and a short command may have had
	 * neither. Add the current slice, up to two ticks (CONFIG_HZ=100). */
	__s64 now = bpf_ktime_get_ns();
	__s64 slice = now - (__s64)task->se.exec_start - slip_of(task, now);

	if (slice < 0 || slice > 20000000)
		slice = 0;
	return task->se.sum_exec_runtime + slice;
}
