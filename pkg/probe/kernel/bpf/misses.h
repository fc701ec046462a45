/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Paths that a process tries again and again: a file that is missing (ENOENT), or a lock file that
 * is in the way (EEXIST). Traced while a run lasts long, since no function is specific to it. */
#pragma once

#define ENOENT 2
#define MISS_EVERY 100000000ULL /* ns between two reports of a path: a program's start misses many, once each */
#define MISS_PATH 244

struct miss_key {
	__u64 who; /* start of the process; of the run for EEXIST, which a command may get each time */
	__u32 error;
	char path[MISS_PATH];
};

struct miss {
	__u64 first, told;
	__u64 count;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct miss_key);
	__type(value, struct miss);
} misses SEC(".maps");

/* Too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct miss_key);
} missed_path SEC(".maps");

static __always_inline void missed(struct task_struct *task, struct call *c, __u8 place, long ret)
{
	struct miss first = {.count = 1}, *m;
	struct process *p = bpf_map_lookup_elem(&processes, &c->tgid);
	struct call_event *e;
	struct miss_key *key;
	__u32 zero = 0;

	key = bpf_map_lookup_elem(&missed_path, &zero);
	if (!p || !key || compat(task))
		return;
	__builtin_memset(key, 0, sizeof(*key));
	key->who = ret == -EEXIST && !p->agent ? p->root.start : p->self.start;
	key->error = -ret;
	if (bpf_probe_read_user_str(key->path, sizeof(key->path), (void *)c->args[place & 3]) <= 1)
		return;
	first.first = first.told = c->start = bpf_ktime_get_ns();
	m = bpf_map_lookup_elem(&misses, key);
	if (!m) {
		bpf_map_update_elem(&misses, key, &first, BPF_ANY);
		return;
	}
	__sync_fetch_and_add(&m->count, 1);
	if (c->start - m->told < MISS_EVERY)
		return;
	m->told = c->start;
	e = record(task, p, CLASS_MISS, c, ret);
	if (!e)
		return;
	e->start = m->first;
	e->object = m->count;
	__builtin_memcpy(e->data, key->path, sizeof(key->path));
	e->len = sizeof(key->path);
	send_record(e, p, false);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_miss, struct pt_regs *regs, long ret)
{
	struct call c = {.tgid = bpf_get_current_pid_tgid() >> 32};
	__u8 place;

	if ((ret != -ENOENT && ret != -EEXIST) || !may_be_tracked(c.tgid))
		return 0;
	c.nr = number_in(regs, true);
	place = path_of[c.nr & (NR_MAX - 1)];
	if (!place)
		return 0;
	hold();
	read_args(regs, true, c.args);
	missed(current_task(), &c, place - 1, ret);
	let_go();
	return 0;
}
