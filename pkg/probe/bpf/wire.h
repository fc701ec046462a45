/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * What goes through the ring buffer. pkg/probe/decode.go reads it; both sides are
 * compiled from here (bpf2go generates the Go structs).
 */
#pragma once

enum kind {
	KIND_FORK = 1,
	KIND_EXEC = 2,
	KIND_EXIT = 3,
};

enum flag {
	FLAG_ROOT = 1 << 0,      /* nobody tracked forked it */
	FLAG_TRUSTED = 1 << 1,   /* privileged: its environment is believed */
	FLAG_SCRIPT = 1 << 2,    /* an interpreter runs the file */
	FLAG_ARGS_CUT = 1 << 3,  /* arguments longer than ARGS_MAX */
	FLAG_ENV_CUT = 1 << 4,   /* environment longer than what is scanned */
};

/* FILE_MAX and ARGS_MAX are one more than a power of two's mask, see scan.h. */
#define FILE_MAX 256
#define ARGS_MAX 1024
#define VAR_MAX 512
#define ENV_ROOM 2048
/* Variables (or pieces of VAR_MAX bytes) of an environment that are searched: ten
 * times what a busy service has. */
#define VARS_MAX 1024
#define STRETCH 64
/* Bytes that are searched for CNI_COMMAND at once, and how often: a quarter of a
 * megabyte, twice as much as one variable can be long (MAX_ARG_STRLEN). */
#define PIECE 2048
#define PIECES_MAX 128

struct task_key {
	__u64 start; /* boot-time nanoseconds of the fork */
	__u32 tgid;  /* as the initial PID namespace counts */
	__u32 pid;   /* as cniscope's PID namespace counts; 0 outside of it */
};

struct head {
	__u8 kind;
	__u8 flags;
	__u16 pad;
	__u32 stdin_dev;
	__u64 time; /* bpf_ktime_get_ns: CLOCK_MONOTONIC */
	struct task_key task;
};

struct fork_event {
	struct head h;
	struct task_key parent;
};

struct exec_event {
	struct head h;
	struct task_key parent;
	__u64 started; /* monotonic nanoseconds of the fork */
	__u64 cpu, delay;
	__u64 netns_cookie;
	__u64 stdin_ino;
	__u32 netns_inum;
	__u16 file_len, args_len, env_len, pad;
	__u32 pad2;
	/* file, then arguments, then chosen variables, each NUL-terminated. */
	__u8 data[FILE_MAX + ARGS_MAX + ENV_ROOM + VAR_MAX];
};

struct exit_event {
	struct head h;
	__u64 cpu, delay;
	__u64 netns_cookie;
	__u32 netns_inum;
	__s32 status; /* as wait(2) gives it */
};
