/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* What an image has as its standard input and output. */
#pragma once

struct opened {
	__u64 ino; /* 0: nothing */
	__u32 dev;
	__u16 mode;
};

/* What lies behind a file of which the verifier knows the type. */
static __always_inline void typed_file(struct file *file, struct opened *to)
{
	struct inode *inode = file->f_inode;

	to->ino = inode->i_ino;
	to->dev = inode->i_sb->s_dev;
	to->mode = inode->i_mode;
}

/* … and where it does not. */
static __always_inline void some_file(struct file *file, struct opened *to)
{
	struct inode *inode = BPF_CORE_READ(file, f_inode);

	to->ino = BPF_CORE_READ(inode, i_ino);
	to->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	to->mode = BPF_CORE_READ(inode, i_mode);
}

/* What is open as a descriptor of the task. A table of files is, for the verifier, an array of
 * pointers to nothing in particular: where there is bpf_rdonly_cast each is read as a field of
 * something that has one. Before that, and where kernel memory is withheld, only what is in the
 * table that a process begins with can be read: whoever forked it had no descriptor above 63. */
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

/* The inode of the pipe behind a descriptor; 0 if that is something else. */
static __always_inline __u64 pipe_of(struct task_struct *task, __u32 fd)
{
	struct opened is = {};

	open_as(task, fd, &is);
	return (is.mode & S_IFMT) == S_IFIFO ? is.ino : 0;
}

/* A delegate is given a pipe of its own to read from, and so may be the next image of a run;
 * what a plugin starts besides inherits the environment of the call, and mostly reads
 * nothing. The folder of a program is not known here, so this takes helpers in a pipeline,
 * too: the reader, which knows the run's own pipes, leaves theirs out. */
static __always_inline void pipes_of(struct task_struct *task, struct process *p)
{
	__u64 in = pipe_of(task, 0);

	if (!in || in == p->in_ino)
		return;
	p->in_ino = in;
	p->out_ino = pipe_of(task, 1);
	mark_pipe(p->in_ino);
	mark_pipe(p->out_ino);
}

/* What the image reads and writes. From a device (/dev/null, a terminal) no configuration
 * comes: that is as good as nothing. */
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
