/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Ends of system calls: a program per kind of call, to which on_return makes a tail call. The
 * verifier examines one program for all in too many states, and newer kernels refuse it. */
#pragma once

enum ending {
	END_WORK,
	END_LOCK,
	END_SEND,
	END_FILE,
	END_STREAM,
	END_OPEN,
	END_CONNECT,
	END_ACCEPT,
	END_ENTER,
	END_LEGACY,
	END_BPF,
	ENDINGS, /* no ending */
};

/* The call that the thread has ended, and its process; none if it is not followed. If the start
 * does not matter, it is 0: now. */
static __always_inline struct process *ended(struct pt_regs *regs, struct call *to)
{
	__u64 id = bpf_get_current_pid_tgid(), start = 0, conn = 0;
	__u32 tgid = id >> 32, tid = id;
	struct process *p = bpf_map_lookup_elem(&processes, &tgid);
	struct call *kept;

	if (!p || compat(current_task()))
		return 0;
	to->tgid = tgid;
	to->nr = number_in(regs, true);
	to->class = class_of[to->nr & (NR_MAX - 1)]; /* the callers have checked that */
	read_args(regs, true, to->args);
	if (is_of(to->class, TIMED) || p->agent) {
		kept = bpf_map_lookup_elem(&calls, &tid);
		if (kept && kept->start && kept->tgid == tgid && kept->nr == to->nr) {
			start = *(volatile __u64 *)&kept->start; /* read again for the verifier */
			conn = kept->conn;
			kept->start = 0;
		} else if (is_of(to->class, TIMED)) { /* it began before tracing */
			return 0;
		} else {
			start = bpf_ktime_get_ns();
		}
	}
	to->start = start;
	to->conn = conn;
	return p;
}

/* handle returns whether everything was reported. */
#define END(name, handle)                                                  \
	SEC("tp_btf/sys_exit")                                             \
	int BPF_PROG(name, struct pt_regs *regs, long ret)                 \
	{                                                                  \
		struct task_struct *task = current_task();                 \
		struct process *p;                                         \
		struct call c;                                             \
									   \
		hold();                                                    \
		p = ended(regs, &c);                                       \
		if (p && !handle(task, p, &c, ret))                        \
			lasted(task, p, &c, ret);                          \
		let_go();                                                  \
		return 0;                                                  \
	}

static __always_inline int nothing(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	return 0;
}

static __always_inline int exit_request(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	return end_request(task, p, c, ret, sock_of(task, c->args[0]));
}

END(end_work, nothing)
END(end_lock, exit_lock)
END(end_send, exit_request)
END(end_file, exit_file)
END(end_stream, exit_stream)
END(end_open, exit_open)
END(end_connect, exit_connect)
END(end_enter, exit_enter)
END(end_legacy, exit_legacy)
END(end_bpf, exit_bpf)

/* Any process that accepts our connection is called by it, followed or not. */
SEC("tp_btf/sys_exit")
int BPF_PROG(end_accept, struct pt_regs *regs, long ret)
{
	struct task_struct *task = current_task();

	hold();
	if (accepted(task, ret))
		serve_stream(task, ret);
	let_go();
	return 0;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, ENDINGS);
	__type(key, __u32);
	__array(values, int(unsigned long long *));
} endings SEC(".maps") = {
	.values = {
		[END_WORK] = (void *)&end_work,
		[END_LOCK] = (void *)&end_lock,
		[END_SEND] = (void *)&end_send,
		[END_FILE] = (void *)&end_file,
		[END_STREAM] = (void *)&end_stream,
		[END_OPEN] = (void *)&end_open,
		[END_CONNECT] = (void *)&end_connect,
		[END_ACCEPT] = (void *)&end_accept,
		[END_ENTER] = (void *)&end_enter,
		[END_LEGACY] = (void *)&end_legacy,
		[END_BPF] = (void *)&end_bpf,
	},
};

/* Streams of agents, and of processes that they ask. */
static __always_inline enum ending end_talk(struct pt_regs *regs, enum ending otherwise, bool reads)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *p = bpf_map_lookup_elem(&processes, &tgid);
	struct file *file = p && (reads || p->agent) ? file_of(current_task(), arg_in(regs, true, 0)) : 0;
	struct sock *sk;

	if (!p || !p->agent)
		return !reads || (p && inode_in(file) == p->in_ino) ? otherwise : ENDINGS;
	sk = sock_in(file);
	return sk && calls_somebody(sk) ? END_STREAM : otherwise;
}

static __always_inline enum ending ending_of(__u8 class, struct pt_regs *regs, long ret)
{
	switch (class) {
	case CLASS_FLOCK:
	case CLASS_FCNTL:
		return END_LOCK;
	case CLASS_SENDTO:
	case CLASS_SENDMSG:
		return end_talk(regs, END_SEND, false);
	case CLASS_RECVFROM:
	case CLASS_RECVMSG:
		return end_talk(regs, ENDINGS, false);
	case CLASS_READ:
	case CLASS_READV:
		return end_talk(regs, END_FILE, true);
	case CLASS_WRITE:
	case CLASS_WRITEV:
		return end_talk(regs, END_FILE, false);
	case CLASS_OPEN:
		return is_namespace(file_of(current_task(), ret)) ? END_OPEN : ENDINGS;
	case CLASS_CONNECT:
		return END_CONNECT;
	case CLASS_ACCEPT:
		return END_ACCEPT;
	case CLASS_SETNS:
	case CLASS_UNSHARE:
		return END_ENTER;
	case CLASS_SETSOCKOPT:
	case CLASS_IOCTL:
		return END_LEGACY;
	case CLASS_BPF:
		return END_BPF;
	}
	return END_WORK;
}
