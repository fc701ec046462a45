/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* bpf(2): programs, maps, and what they are attached to. */
#pragma once

/* include/uapi/linux/bpf.h */
#define BPF_MAP_CREATE 0
#define BPF_PROG_LOAD 5
#define BPF_OBJ_PIN 6
#define BPF_PROG_ATTACH 8
#define BPF_PROG_DETACH 9
#define BPF_LINK_CREATE 28
#define BPF_LINK_UPDATE 29
#define BPF_LINK_DETACH 34
#define CGROUP2_SUPER_MAGIC 0x63677270 /* include/uapi/linux/magic.h */
#define PROG_NAME 16

/* Start of every reported command, as words; BPF_OBJ_PIN has a path's address in the first two. */
struct attr {
	__u32 word[ATTR_MAX / 4];
};

static __always_inline bool attaches(__u32 cmd)
{
	switch (cmd) {
	case BPF_PROG_ATTACH:
	case BPF_PROG_DETACH:
	case BPF_LINK_CREATE:
	case BPF_LINK_UPDATE:
	case BPF_LINK_DETACH:
		return true;
	}
	return false;
}

/* Lookups and updates of maps are reported only for their duration. */
static __always_inline bool requests(__u32 cmd)
{
	return cmd == BPF_MAP_CREATE || cmd == BPF_PROG_LOAD || cmd == BPF_OBJ_PIN || attaches(cmd);
}

static __always_inline void name_program(struct call_event *e, struct bpf_prog *prog)
{
	bpf_probe_read_kernel(&e->data[ATTR_MAX], PROG_NAME,
			      (void *)BPF_CORE_READ(prog, aux) + bpf_core_field_offset(struct bpf_prog_aux, name));
}

static __always_inline struct net_device *device_of(struct bpf_link *link)
{
	switch (BPF_CORE_READ(link, type)) {
	case BPF_LINK_TYPE_XDP:
		return bpf_core_type_exists(struct bpf_xdp_link) ? BPF_CORE_READ((struct bpf_xdp_link *)link, dev) : 0;
	case BPF_LINK_TYPE_TCX:
		return bpf_core_type_exists(struct tcx_link) ? BPF_CORE_READ((struct tcx_link *)link, dev) : 0;
	case BPF_LINK_TYPE_NETKIT:
		return bpf_core_type_exists(struct netkit_link) ? BPF_CORE_READ((struct netkit_link *)link, dev) : 0;
	}
	return 0;
}

/* The interface of a link; false if it has none. */
static __always_inline bool about_device(struct call_event *e, struct task_struct *task, __u32 fd)
{
	struct bpf_link *link = BPF_CORE_READ(file_of(task, fd), private_data);
	struct net_device *dev = link ? device_of(link) : 0;

	if (!dev)
		return false;
	if (e->args[0] == BPF_LINK_UPDATE || e->args[0] == BPF_LINK_DETACH)
		name_program(e, BPF_CORE_READ(link, prog));
	e->port = BPF_CORE_READ(dev, ifindex);
	bpf_probe_read_kernel(e->comm, sizeof(e->comm), (void *)dev + bpf_core_field_offset(struct net_device, name));
	namespace_of(e, BPF_CORE_READ(dev, nd_net.net));
	return true;
}

/* The cgroup or network namespace behind a descriptor; false for others. */
static __always_inline bool about_target(struct call_event *e, struct task_struct *task, __u32 fd)
{
	struct file *file = file_of(task, fd);

	switch (BPF_CORE_READ(file, f_inode, i_sb, s_magic)) {
	case CGROUP2_SUPER_MAGIC:
		append_path(e, file);
		return true;
	case NSFS_MAGIC:
		return network_of(e, task, file);
	}
	return false;
}

/* enum bpf_attach_type: whether the target is an interface's index. */
static __always_inline bool by_index(__u32 attach)
{
	return attach == 37 /* XDP */ || attach == 46 || attach == 47 /* TCX */ || attach == 54 || attach == 55 /* NETKIT */;
}

static __always_inline bool about_attachment(struct call_event *e, struct task_struct *task, const struct attr *a, __s64 ret)
{
	__u32 cmd = e->args[0], target = cmd == BPF_LINK_CREATE ? a->word[1] : a->word[0];
	__u32 program = cmd == BPF_LINK_CREATE ? a->word[0] : a->word[1];

	if (cmd == BPF_LINK_UPDATE || cmd == BPF_LINK_DETACH)
		return about_device(e, task, a->word[0]);
	if (program)
		name_program(e, BPF_CORE_READ(file_of(task, program), private_data));
	if (!by_index(a->word[2]))
		return about_target(e, task, target);
	if (cmd != BPF_LINK_CREATE || ret < 0 || !about_device(e, task, ret)) {
		e->port = target;
		netns_of(task, &e->netns_cookie, &e->netns_inum);
	}
	return true;
}

/* Reports requests that lasted, failed, or name an interface, a cgroup or a network namespace;
 * it returns whether the call was a request. It only uses the call, so that the kernel
 * function's program can use it also. */
static __noinline int exit_bpf(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	struct attr *a;
	__u64 n = c ? c->args[2] : 0;
	bool names = false;

	if (!p || !c || !requests(c->args[0]))
		return 0;
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 0;
	__builtin_memset(e->data, 0, ATTR_MAX + PROG_NAME);
	e->len = ATTR_MAX + PROG_NAME;
	HIDE(n);
	if (n > ATTR_MAX)
		n = ATTR_MAX;
	bpf_probe_read_user(e->data, n, (void *)c->args[1]);
	a = (void *)e->data;
	if (attaches(c->args[0]))
		names = about_attachment(e, task, a, ret);
	if (!names && ret >= 0 && e->h.time - c->start < LASTED)
		return 1;
	if (c->args[0] == BPF_OBJ_PIN) {
		long got = bpf_probe_read_user_str(&e->data[ATTR_MAX + PROG_NAME], TEXT_MAX,
						   (void *)(a->word[0] | (__u64)a->word[1] << 32));

		if (got > 0)
			e->len += got;
	}
	send_record(e, p, false);
	return 1;
}
