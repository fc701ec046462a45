/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Records of activities of a process: one buffer, filled in steps. */
#pragma once

/* Shorter waits do not matter: they are summed up elsewhere. */
#define LASTED 1000000ULL      /* a system call, 1 ms */
#define CONTENDED 100000ULL    /* a kernel lock, 0.1 ms */
#define SYSMON_MAX 10500000ULL /* Go's runtime naps up to 10 ms (runtime/proc.go, sysmon) */

struct record {
	struct call_event e;
	__u8 room[DATA_MAX]; /* keeps offsets below DATA_MAX inside */
};

/* An interrupt may come while a system call's record is filled, and change a socket's state. */
enum slot {
	OF_CALL,
	OF_STATE,
	OF_SWITCH, /* … and either may be followed by a switch */
	SLOTS_PER_CPU,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS_PER_CPU);
	__type(key, __u32);
	__type(value, struct record);
} records SEC(".maps");

/* Hides a value from the compiler, so that it keeps a check that only the verifier needs. */
#define HIDE(value) asm volatile("" : "+r"(value))

/* Typed helpers of 5.11, for older kernels also. */
static __always_inline struct task_struct *current_task(void)
{
	return (void *)bpf_get_current_task();
}

/* Begins a record with its common fields. */
static __always_inline struct call_event *record_in(__u32 slot, const struct process *p, enum class class,
						    const struct call *c, __s64 ret)
{
	struct record *r = bpf_map_lookup_elem(&records, &slot);
	struct call_event *e;

	if (!r)
		return 0;
	e = &r->e;
	__builtin_memset(e, 0, __builtin_offsetof(struct call_event, data));
	e->h.kind = KIND_CALL;
	e->h.time = bpf_ktime_get_ns();
	e->h.task = p->self;
	e->thread = bpf_get_current_pid_tgid();
	e->class = class;
	e->ret = ret;
	if (c) {
		e->start = c->start ? c->start : e->h.time;
		e->nr = c->nr;
		__builtin_memcpy(e->args, c->args, sizeof(e->args));
	} else {
		e->start = e->h.time;
	}
	return e;
}

static __always_inline struct call_event *record(struct task_struct *task, const struct process *p,
						 enum class class, const struct call *c, __s64 ret)
{
	return record_in(OF_CALL, p, class, c, ret);
}

static __always_inline bool send_record(struct call_event *e, const struct process *p, bool wake)
{
	__u64 n = e->len;

	HIDE(n);
	if (n > DATA_MAX)
		n = DATA_MAX;
	return send(e, __builtin_offsetof(struct call_event, data) + n, p, wake);
}

/* Appends memory of the process. */
static __always_inline void append(struct call_event *e, struct process *p, __u64 from, __u64 n)
{
	__u64 at = e->len;

	if (at >= DATA_MAX || p->bytes >= BYTES_MAX) {
		e->cut |= n > 0;
		return;
	}
	if (n > DATA_MAX - at) {
		n = DATA_MAX - at;
		e->cut = 1;
	}
	HIDE(n); /* the verifier does not see the bound */
	if (n > DATA_MAX)
		return;
	if (bpf_probe_read_user(&e->data[at & (DATA_MAX - 1)], n, (void *)from)) {
		e->cut = 1;
		return;
	}
	e->len = at + n;
	p->bytes += n;
}

/* Appends up to n bytes of an array of buffers. */
static __always_inline void append_all(struct call_event *e, struct process *p, __u64 iov, __u64 count, __u64 n)
{
	for (int i = 0; i < 4; i++) {
		struct iovec v = {};

		if (i >= count || !n)
			return;
		if (bpf_probe_read_user(&v, sizeof(v), (void *)(iov + i * sizeof(v)))) {
			e->cut = 1;
			return;
		}
		if (v.len > n)
			v.len = n;
		n -= v.len;
		append(e, p, v.base, v.len);
	}
	e->cut |= count > 4 && n;
}

#define TEXT_MAX 256

/* Appends the text arguments of a call, NUL-terminated; unreadable ones are empty. */
static __noinline int append_texts(struct call_event *e, struct call *c, __u8 which)
{
	if (!e || !c)
		return 0;
	for (int i = 0; i < 4; i++) {
		__u32 at = e->len;
		long n;

		if (!(which & (1 << i)) || at > DATA_MAX - TEXT_MAX)
			continue;
		n = bpf_probe_read_user_str(&e->data[at & (DATA_MAX - 1)], TEXT_MAX, (void *)c->args[i]);
		if (n <= 0) {
			e->data[at & (DATA_MAX - 1)] = 0;
			n = 1;
		}
		e->len = at + n;
	}
	return 0;
}

static __always_inline void append_message(struct call_event *e, struct process *p, __u64 message, __u64 n)
{
	struct msghdr m = {};

	if (!bpf_probe_read_user(&m, sizeof(m), (void *)message))
		append_all(e, p, m.iov, m.iovlen, n);
}

static __always_inline void namespace_of(struct call_event *e, struct net *net)
{
	e->netns_inum = BPF_CORE_READ(net, ns.inum);
	e->netns_cookie = cookie_of(net);
}

#define PATH_DEPTH 14
#define NAME_MAX 64

/* Appends the names from a file up to the root, NUL-terminated. */
static __noinline int append_path(struct call_event *e, struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct vfsmount *vfs = BPF_CORE_READ(file, f_path.mnt);

	if (!e)
		return 0;
	for (int i = 0; i < PATH_DEPTH; i++) {
		struct dentry *up = BPF_CORE_READ(dentry, d_parent);
		__u32 at = e->len;

		if (dentry == BPF_CORE_READ(vfs, mnt_root)) { /* continue at the mount point */
			struct mount *m = (void *)vfs - bpf_core_field_offset(struct mount, mnt);
			struct mount *above = BPF_CORE_READ(m, mnt_parent);

			if (above == m)
				return 0;
			dentry = BPF_CORE_READ(m, mnt_mountpoint);
			vfs = (void *)above + bpf_core_field_offset(struct mount, mnt);
			continue;
		}
		if (up == dentry || at > DATA_MAX - NAME_MAX)
			return 0;
		long n = bpf_probe_read_kernel_str(&e->data[at & (DATA_MAX - 1)], NAME_MAX,
						   BPF_CORE_READ(dentry, d_name.name));

		if (n > 0)
			e->len = at + n;
		dentry = up;
	}
	return 0;
}
