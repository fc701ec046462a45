/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Pipes of runs, marked by the last bits of their inode numbers: a quick no for other reads and
 * writes. Process tracking sets marks; the reader clears all if no process is followed. A wrong
 * mark only costs a lookup. */
#pragma once

#define PIPES 4096

__u8 pipes[PIPES] SEC(".data.pipes");

static __always_inline void mark_pipe(__u64 ino)
{
	pipes[ino & (PIPES - 1)] = 1;
}

static __always_inline bool is_marked(__u64 ino)
{
	return pipes[ino & (PIPES - 1)];
}
