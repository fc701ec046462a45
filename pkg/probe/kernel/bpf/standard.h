/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Standard input and output of an image. */
#pragma once

struct opened {
	__u64 ino; /* 0: none */
	__u32 dev;
	__u16 mode;
};

/* The inode behind a file whose type the verifier knows. */
static __always_inline void typed_file(struct file *file, struct opened *to)
{
	struct inode *inode = file->f_inode;

	to->ino = inode->i_ino;
	to->dev = inode->i_sb->s_dev;
	to->mode = inode->i_mode;
}

/* … or does not. */
static __always_inline void some_file(struct file *file, struct opened *to)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	to->ino = BPF_CORE_READ(inode, i_ino);
	to->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	to->mode = BPF_CORE_READ(inode, i_mode);
}

/* The file behind a descriptor. To the verifier a table of files has untyped pointers. With
 * bpf_rdonly_cast each is read as a field of something. Without it, and if kernel memory is
 * withheld, only the initial table is readable: up to descriptor 63 of the forking process. */
static __always_inline void open_as(struct task_struct *task, __u32 fd, struct opened *to)
{
	struct files_struct *files = task->files;
	struct fdtable *table = files->fdt;

	if (fd >= table->max_fds)
		return;
	if (bpf_rdonly_cast) {
		void *place = (void *)table->fd + fd * sizeof(struct file *);

		typed_file(CAST(place - bpf_core_field_offset(struct linux_binprm, file), linux_binprm)->file, to);
	} else if (!withheld) {
		some_file(file_of(task, fd), to);
	} else if (table == &files->fdtab) {
		typed_file(files->fd_array[fd], to);
	}
}

/* The inode of the pipe behind a descriptor; else 0. */
static __always_inline __u64 pipe_of(struct task_struct *task, __u32 fd)
{
	struct opened is = {};

	open_as(task, fd, &is);
	return (is.mode & S_IFMT) == S_IFIFO ? is.ino : 0;
}

/* Delegated plugins, and possibly a run's next image, have an input pipe of their own; a
 * plugin's commands inherit the environment and usually read nothing. CNI_PATH is unknown here,
 * so helpers in a pipeline also match: the reader, which knows the run's pipes, ignores them. */
static __always_inline void pipes_of(struct task_struct *task, struct process *p)
{
	__u64 in = pipe_of(task, 0);

	if (!in || in == p->in_ino)
		return;
	p->in_ino = in;
	p->out_ino = pipe_of(task, 1);
	p->err_ino = pipe_of(task, 2);
	mark_pipe(p->in_ino);
	mark_pipe(p->out_ino);
	mark_pipe(p->err_ino);
}

/* What the image reads and writes. A device (/dev/null, a terminal) has no configuration, so it
 * counts as none. */
static __always_inline void standard_of(struct task_struct *task, struct exec_event *e)
{
	struct opened is = {};

	open_as(task, 0, &is);
	if ((is.mode & S_IFMT) == S_IFCHR)
		is.ino = is.dev = 0;
	e->stdin_ino = is.ino;
	e->h.stdin_dev = is.dev;
	e->stdout_ino = pipe_of(task, 1);
}
