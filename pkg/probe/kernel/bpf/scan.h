/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Reads file, arguments and environment of an image before it runs. */
#pragma once

/* Decides by a variable's first eight bytes. */
static __always_inline bool wanted(const __u8 *var, struct scratch *s)
{
	__u32 w[3];

	__builtin_memcpy(w, var, sizeof(w));
	if (w[0] == WORD4('C', 'N', 'I', '_')) {
		s->found |= w[1] == WORD4('C', 'O', 'M', 'M') && w[2] == WORD4('A', 'N', 'D', '=');
		if (w[1] == WORD4('C', 'O', 'N', 'T') && w[2] == WORD4('A', 'I', 'N', 'E'))
			s->container = s->off;
		return true;
	}
	/* Only where it leaves the others room. */
	if (w[0] == WORD4('B', 'A', 'G', 'G') && w[1] == WORD4('A', 'G', 'E', '='))
		return s->off < FILE_MAX + ARGS_MAX + ENV_ROOM - 4 * VAR_MAX;
	return w[0] == WORD4('T', 'R', 'A', 'C') &&
	       (w[1] == WORD4('E', 'P', 'A', 'R') || w[1] == WORD4('E', 'S', 'T', 'A'));
}

/* A stretch of the environment; 0 at the end. It is a global function, which the verifier
 * examines only once: a single loop over VARS_MAX is too complex for it ("the sequence of 8193
 * jumps is too complex"). All state is in the scratch. */
__noinline int scan_stretch(void)
{
	__u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);

	if (!s)
		return 0;
	for (int i = 0; i < STRETCH; i++) {
		__u64 at = s->at;
		__u32 off = s->off;
		__u8 *var;
		long n;

		if (at >= s->end || s->event.h.flags & FLAG_ENV_CUT)
			return 0;
		if (off >= FILE_MAX + ARGS_MAX + ENV_ROOM) {
			s->event.h.flags |= FLAG_ENV_CUT;
			return 0;
		}
		var = &s->event.data[off];
		n = bpf_probe_read_user_str(var, VAR_MAX, (void *)at);
		if (n < 0) {
			s->event.h.flags |= FLAG_ENV_CUT;
			return 0;
		}
		/* Some kernels (6.1) count no NUL for an empty string. */
		if (n == 0)
			n = 1;
		if (!s->continued && wanted(var, s))
			s->off = off + n;
		/* A piece that fills the buffer was cut: continue behind it, and skip everything
		 * up to a NUL. */
		s->continued = n == VAR_MAX;
		s->at = at + n - s->continued;
	}
	return 1;
}

/* Searches the whole environment: libcni iterates over a Go map, so the order is random. */
static __always_inline void scan_env(struct task_struct *task, struct scratch *s)
{
	struct mm_struct *mm = task->mm;
	__u32 first = s->off;

	s->at = READ(mm, env_start);
	s->end = READ(mm, env_end);
	s->continued = 0;
	s->found = 0;
	s->container = 0;
	for (int i = 0; i < VARS_MAX / STRETCH; i++)
		if (!scan_stretch())
			break;
	if (s->at < s->end)
		s->event.h.flags |= FLAG_ENV_CUT;
	s->event.env_len = s->off - first;
}

static __always_inline void read_file(struct linux_binprm *bprm, struct scratch *s)
{
	struct exec_event *e = &s->event;
	const char *filename = bprm->filename;
	/* The kernel has just put it onto the program's stack. */
	long n = bpf_probe_read_user_str(e->data, FILE_MAX, (void *)bprm->exec);

	e->file_len = 0;
	if (n > 0)
		e->file_len = n;
	if (filename != bprm->interp)
		e->h.flags |= FLAG_SCRIPT;
	s->off = e->file_len;
}

static __always_inline void read_args(struct task_struct *task, struct scratch *s)
{
	struct exec_event *e = &s->event;
	struct mm_struct *mm = task->mm;
	unsigned long from = READ(mm, arg_start);
	__u64 n = READ(mm, arg_end) - from;
	__u32 off = s->off & (FILE_MAX * 2 - 1);

	if (n > ARGS_MAX - 1) {
		n = ARGS_MAX - 1;
		e->h.flags |= FLAG_ARGS_CUT;
	}
	n &= ARGS_MAX - 1;
	e->args_len = 0;
	if (bpf_probe_read_user(&e->data[off], n, (void *)from) == 0)
		e->args_len = n;
	s->off = off + e->args_len;
}
