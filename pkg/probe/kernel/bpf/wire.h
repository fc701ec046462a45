/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Records in the ring buffer, for both sides: pkg/probe/decode reads them, and bpf2go generates
 * the Go structs. */
#pragma once

enum kind {
	KIND_FORK = 1,
	KIND_EXEC = 2,
	KIND_EXIT = 3,
	KIND_CALL = 4,
};

enum flag {
	FLAG_ROOT = 1 << 0,      /* no tracked process forked it */
	FLAG_TRUSTED = 1 << 1,   /* privileged: its environment is trusted */
	FLAG_SCRIPT = 1 << 2,    /* an interpreter runs the file */
	FLAG_ARGS_CUT = 1 << 3,  /* arguments longer than ARGS_MAX */
	FLAG_ENV_CUT = 1 << 4,   /* environment longer than the searched part */
	FLAG_START = 1 << 5,     /* a process of a sandbox's start */
	FLAG_CONTEXT = 1 << 6,   /* its thread published a context, see context.h */
};

/* Why a run is trusted, see believe.h. */
enum caller {
	CALLER_NOBODY = 0,
	CALLER_RUNTIME,    /* a child of the container runtime */
	CALLER_AGENT,      /* run by a server of plugins */
	CALLER_HOST,       /* in the host's mount namespace */
	CALLER_PRIVILEGED, /* CAP_SYS_ADMIN, with an unknown runtime */
	CALLER_ROOTLESS,   /* a child of a runtime in a user namespace */
};

/* One more than a power of two's mask, see scan.h. */
#define FILE_MAX 256
#define ARGS_MAX 1024
#define VAR_MAX 512
#define ENV_ROOM 2048
/* Searched variables (or pieces of VAR_MAX bytes): ten times those of a busy service. */
#define VARS_MAX 1024
#define STRETCH 64
/* Bytes that are searched for CNI_COMMAND at once, and how often: 256 KiB, twice the longest
 * variable (MAX_ARG_STRLEN). */
#define PIECE 2048
#define PIECES_MAX 128

struct task_key {
	__u64 start; /* boot-time ns of the fork */
	__u32 tgid;  /* in the initial PID namespace */
	__u32 pid;   /* in cniscope's PID namespace; 0 outside of it */
};

struct head {
	__u8 kind;
	__u8 flags;
	__u16 pad;
	__u32 stdin_dev;
	__u64 time; /* bpf_ktime_get_ns: CLOCK_MONOTONIC */
	struct task_key task;
};

/* Go needs ten frames from its fork to the caller of os/exec. */
#define FRAMES_MAX 32

/* A thread's span, as OTEP 4947 lays it out. */
struct thread_context {
	__u8 trace[16], span[8];
	__u8 valid; /* 1; CONTEXT_BROKEN: unreadable */
	__u8 trace_flags;
	__u16 attributes; /* bytes behind it, unread */
};

#define CONTEXT_BROKEN 255

struct fork_event {
	struct head h;
	struct task_key parent;
	/* Of the parent, if its program may be named: mount namespace, number of execs, where its code is mapped,
	 * and user stack, innermost address first. */
	__u32 mounts, execs;
	__u64 code_start, code_end;
	__u64 stack[FRAMES_MAX];
	struct thread_context context; /* with FLAG_CONTEXT */
};

struct exec_event {
	struct head h;
	struct task_key parent;
	__u64 started; /* monotonic ns of the fork */
	__u64 cpu, delay;
	__u64 netns_cookie;
	__u64 stdin_ino;  /* 0: none */
	__u64 stdout_ino; /* if it is a pipe */
	__u64 asking;     /* duration of unreported queries of the previous image, ns */
	__u32 asked;      /* … and their number */
	__u32 netns_inum;
	__u16 file_len, args_len, env_len;
	__u8 caller; /* for a root */
	__u8 pad;
	/* file, then arguments, then chosen variables, each NUL-terminated. */
	__u8 data[FILE_MAX + ARGS_MAX + ENV_ROOM + VAR_MAX];
};

struct exit_event {
	struct head h;
	__u64 cpu, delay;
	__u64 netns_cookie;
	__u64 asking; /* as in exec_event, of the last image */
	__u32 asked;
	__u32 netns_inum;
	__s32 status; /* as in wait(2) */
	__u32 pad;
};

/* Kind of a system call. The reader's table maps the architecture's numbers to it. */
enum class {
	CLASS_OTHER = 0, /* reported if it waited */
	CLASS_NEVER,     /* ignored, or it does not return */
	CLASS_SLEEP,
	CLASS_FUTEX,
	CLASS_POLL,
	CLASS_WAIT, /* for a child */
	CLASS_FLOCK,
	CLASS_FCNTL,
	CLASS_SENDTO,
	CLASS_SENDMSG,
	CLASS_RECVFROM,
	CLASS_RECVMSG,
	CLASS_READ,
	CLASS_READV,
	CLASS_WRITE,
	CLASS_WRITEV,
	CLASS_OPEN,
	CLASS_CONNECT,
	CLASS_ACCEPT,
	CLASS_CLOSE,
	CLASS_SETNS,
	CLASS_UNSHARE,
	CLASS_SETSOCKOPT,
	CLASS_IOCTL,
	CLASS_BPF,
	CLASS_WORK, /* reported for its duration, waiting or not */
	/* No system calls, but reported in the same way. */
	CLASS_LOCK_HELD, /* a wait for a file lock begins */
	CLASS_MUTEX,
	CLASS_REFUSED, /* an asynchronous connect failed */
	CLASS_FIRST,   /* the first connection of a network namespace */
	CLASS_EXCHANGE, /* a server wrote to a stream and read the answer */
	CLASS_MISS, /* a path failed again, see misses.h */
	CLASSES,
};

/* Reported bytes of a union bpf_attr, before the program's name and a path. */
#define ATTR_MAX 64

#define NR_MAX 512
#define SUBSYSTEMS 16 /* of nfnetlink; the kernel has 13 */
/* Bytes of a message, a configuration, a result: a page. */
#define DATA_MAX 4096
/* … and in all of one process: twenty ordinary configurations. */
#define BYTES_MAX (1 << 18)
#define STACK_DEPTH 12

struct call_event {
	struct head h;
	__u64 start;
	__s64 ret;
	__u64 args[4];
	__u64 object; /* a file's inode, a lock's address, a connection's start */
	__u64 netns_cookie;
	struct task_key other; /* lock holder, or accepting process */
	__u8 comm[16];	       /* its program */
	__u32 netns_inum;
	__u32 thread;
	__u32 port; /* of a netlink socket; or a connection's thread */
	__u32 len;  /* of data */
	__u16 nr;
	__u16 protocol; /* of a netlink socket; else the address family */
	__u8 class;
	__u8 out; /* standard output, not input */
	__u8 cut; /* data was cut */
	__u8 pad;
	__u8 data[DATA_MAX];
};
