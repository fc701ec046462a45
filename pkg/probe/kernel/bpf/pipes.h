/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * Which pipes runs are spoken to by, for a quick no to all other reads and writes of pipes: marked by the last
 * bits of their inode numbers. What follows processes marks them; the reader takes all marks away when nobody is
 * followed. One too many only costs a look into the tables.
 */
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
