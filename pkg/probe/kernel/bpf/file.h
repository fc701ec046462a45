/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Activities on files: a plugin's standard input and output, sysctls, namespaces. */
#pragma once

#define PROC_SUPER_MAGIC 0x9fa0	    /* include/uapi/linux/magic.h */
#define NSFS_MAGIC 0x6e736673
#define VALUE_MAX 64
#define SAID_MAX 4096
#define CHUNKS 8 /* a pipe holds 64 KiB, but configurations have up to 32 */

struct chunk {
	struct call *c;
	struct process *p;
	__u64 object;
	__s64 ret;
};

/* A page of input or output. */
static __noinline int send_chunk(struct task_struct *task, struct chunk *k, __u64 at, bool vector)
{
	struct call_event *e;
	__u64 n = k ? k->ret - at : 0;

	if (!k || !k->c || !k->p)
		return 0;
	e = record(task, k->p, k->c->class, k->c, k->ret);
	if (!e)
		return 0;
	e->object = k->object;
	e->out = k->c->class == CLASS_WRITE || k->c->class == CLASS_WRITEV;
	if (e->out && k->object != k->p->out_ino)
		e->out = 2;
	if (vector)
		append_all(e, k->p, k->c->args[1], k->c->args[2], k->ret);
	else /* the rest goes into the next chunk, if there is one */
		append(e, k->p, k->c->args[1] + at, n > DATA_MAX && at < (CHUNKS - 1) * DATA_MAX ? DATA_MAX : n);
	send_record(e, k->p, false);
	return 0;
}

static __always_inline __u64 inode_in(struct file *file)
{
	return LOAD(LOAD(file, file, f_inode), inode, i_ino);
}

static __noinline int write_setting(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct file *file;
	struct call_event *e;
	__u64 n = VALUE_MAX;

	if (!p || !c)
		return 0;
	file = file_of(task, c->args[0]);
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 0;
	if (c->args[2] < n)
		n = c->args[2];
	append(e, p, c->args[1], n);
	e->object = e->len; /* the path follows the value */
	e->protocol = 1;
	append_path(e, file);
	netns_of(task, &e->netns_cookie, &e->netns_inum);
	send_record(e, p, false);
	return 0;
}

/* Whether a write to standard error is reported: up to SAID_MAX bytes of a process, and again as many from where Go
 * panics or its runtime gives up. */
static __noinline bool says(struct process *p, struct call *c, __s64 n)
{
	char begins[4] = {};

	if (!p || !c || p->err_ino == p->out_ino)
		return false;
	if (c->class == CLASS_WRITE)
		bpf_probe_read_user(begins, sizeof(begins), (void *)c->args[1]);
	if (!__builtin_memcmp(begins, "pani", 4) || !__builtin_memcmp(begins, "fata", 4))
		p->said = 0;
	if (p->said >= SAID_MAX)
		return false;
	p->said += n;
	return true;
}

static __noinline int exit_file(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct file *file;
	struct inode *inode;
	struct chunk k;
	bool out;

	if (!p || !c)
		return 0;
	out = c->class == CLASS_WRITE || c->class == CLASS_WRITEV;
	file = file_of(task, c->args[0]);
	inode = LOAD(file, file, f_inode);
	if (out && c->class == CLASS_WRITE && BPF_CORE_READ(inode, i_sb, s_magic) == PROC_SUPER_MAGIC)
		return write_setting(task, p, c, ret);
	k.object = inode_in(file);
	if (ret <= 0 || !k.object)
		return 0;
	if (k.object != (out ? p->out_ino : p->in_ino) && !(out && k.object == p->err_ino && says(p, c, ret)))
		return 0;
	k.c = c;
	k.p = p;
	k.ret = ret;
	if (c->class == CLASS_READV || c->class == CLASS_WRITEV)
		return send_chunk(task, &k, 0, true);
	for (__s64 i = 0; i < CHUNKS; i++) {
		if (i * DATA_MAX >= ret)
			break;
		send_chunk(task, &k, i * DATA_MAX, false);
	}
	return 0;
}

/* The network namespace behind a file of nsfs; false for other kinds. */
static __always_inline bool network_of(struct call_event *e, struct task_struct *task, struct file *file)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct ns_common___ops *ns = BPF_CORE_READ((struct inode___ns *)inode, i_private);
	struct net___ops *own = (void *)BPF_CORE_READ(task, nsproxy, net_ns);

	if (!ns || BPF_CORE_READ(ns, ops) != BPF_CORE_READ(own, ns.ops))
		return false;
	namespace_of(e, (void *)ns - bpf_core_field_offset(struct net, ns));
	return true;
}

static __always_inline bool is_namespace(struct file *file)
{
	return LOAD(LOAD(LOAD(file, file, f_inode), inode, i_sb), super_block, s_magic) == NSFS_MAGIC;
}

/* A later request may name a namespace by its descriptor. */
static __noinline int exit_open(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	struct file *file;

	if (!p || !c || ret < 0)
		return 0;
	file = file_of(task, ret);
	if (!is_namespace(file))
		return 0;
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 0;
	e->object = inode_in(file);
	network_of(e, task, file);
	append_path(e, file); /* only mounted files have a path, not those of /proc */
	send_record(e, p, false);
	return 0;
}

/* Network namespaces that plugins entered, and when: their first connections are awaited. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, __u64);
	__type(value, __u64);
} awaited SEC(".maps");

static __noinline int exit_enter(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	__u64 cookie = 0;
	__u32 inum = 0;

	if (!p || !c || ret)
		return 0;
	netns_of(task, &cookie, &inum);
	if (inum == p->home || cookie == p->entered)
		return 0;
	p->entered = cookie;
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 0;
	e->netns_cookie = cookie;
	e->netns_inum = inum;
	if (cookie)
		bpf_map_update_elem(&awaited, &cookie, &e->h.time, BPF_ANY);
	send_record(e, p, false);
	return 0;
}
