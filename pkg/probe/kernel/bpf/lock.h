/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* File locks: waiters and holders. */
#pragma once

#define LOCK_NB 4	   /* include/uapi/asm-generic/fcntl.h */
#define F_SETLK 6
#define F_SETLKW 7
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38

/* Whether the call acquires or releases a lock; other commands of fcntl do not. */
static __always_inline bool locks(const struct call *c)
{
	__u64 cmd = c->args[1];

	return c->class == CLASS_FLOCK || cmd == F_SETLK || cmd == F_SETLKW || cmd == F_OFD_SETLK ||
	       cmd == F_OFD_SETLKW;
}

/* The holder of the first lock on the file; 0 if there is none, -1 if it belongs to an open
 * file. */
static __always_inline pid_t lock_holder(struct file *file, bool posix)
{
	struct file_lock_context *ctx = BPF_CORE_READ(file, f_inode, i_flctx);
	struct list_head *list, *first;

	if (!ctx)
		return 0;
	list = posix ? (void *)ctx + bpf_core_field_offset(struct file_lock_context, flc_posix)
		     : (void *)ctx + bpf_core_field_offset(struct file_lock_context, flc_flock);
	first = BPF_CORE_READ(list, next);
	if (!first || first == list)
		return 0;
	if (bpf_core_type_exists(struct file_lock_core)) {
		struct file_lock_core *l = (void *)first - bpf_core_field_offset(struct file_lock_core, flc_list);

		return BPF_CORE_READ(l, flc_pid);
	}
	struct file_lock *l = (void *)first - bpf_core_field_offset(struct file_lock, fl_list);

	return BPF_CORE_READ(l, fl_pid);
}

/* Reported at once if the lock is held: only now the holder is known. */
static __noinline int enter_lock(struct task_struct *task, struct process *p, struct call *c)
{
	struct call_event *e;
	struct file *file;
	pid_t holder;

	if (!p || !c || !locks(c))
		return 0;
	file = file_of(task, c->args[0]);
	holder = lock_holder(file, c->class == CLASS_FCNTL);
	if (!holder || holder == p->self.tgid)
		return 0;
	e = record(task, p, CLASS_LOCK_HELD, c, 0);
	if (!e)
		return 0;
	e->other.tgid = holder;
	e->object = BPF_CORE_READ(file, f_inode, i_ino);
	send_record(e, p, true);
	return 0;
}

static __noinline int exit_lock(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	struct file *file;

	if (!p || !c || !locks(c))
		return 1;
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 1;
	if (c->class == CLASS_FCNTL) { /* l_type, the first field of struct flock */
		__s16 type = 0;

		bpf_probe_read_user(&type, sizeof(type), (void *)c->args[2]);
		e->args[3] = type;
	}
	file = file_of(task, c->args[0]);
	e->object = BPF_CORE_READ(file, f_inode, i_ino);
	append_path(e, file);
	send_record(e, p, false);
	return 1;
}
