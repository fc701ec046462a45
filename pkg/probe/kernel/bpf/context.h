/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Spans that threads publish by a thread-local variable (OTEP 4947). */
#pragma once

/* A program's file. Devices differ between stat(2) and the kernel on overlayfs and btrfs. */
struct publisher {
	__u64 inode, size;
};

/* Where the variable is, from the thread pointer. The reader finds it in the file. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, struct publisher);
	__type(value, __s64);
} publishers SEC(".maps");

/* Whether there is any. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} publishing SEC(".maps");

/* Where the variable of a process's program is; 0 without one. */
static __always_inline __s64 *variable_of(struct task_struct *task)
{
	__u32 zero = 0, *any = bpf_map_lookup_elem(&publishing, &zero);
	struct publisher of = {};
	struct file *file;

	if (!any || !*any)
		return 0;
	file = READ(task, mm, exe_file);
	if (!file)
		return 0;
	of.inode = READ(file, f_inode, i_ino);
	of.size = READ(file, f_inode, i_size);
	return bpf_map_lookup_elem(&publishers, &of);
}

/* The context of the current thread; false without one. At a fork owner is the child, whose
 * copy of the thread pointer is current. */
static __always_inline bool published(struct task_struct *owner, const __s64 *offset, struct thread_context *to)
{
	struct task_struct___fs *fs = (void *)owner;
	struct task_struct___tp *tp = (void *)owner;
	__u64 base, at = 0;

	if (!offset)
		return false;
	if (bpf_core_field_exists(fs->thread.fsbase))
		base = READ(fs, thread.fsbase);
	else
		base = READ(tp, thread.uw.tp_value);
	if (bpf_probe_read_user(&at, sizeof(at), (void *)(base + *offset)) ||
	    (at && bpf_probe_read_user(to, sizeof(*to), (void *)at)))
		to->valid = CONTEXT_BROKEN;
	else if (!at)
		return false;
	return to->valid;
}
