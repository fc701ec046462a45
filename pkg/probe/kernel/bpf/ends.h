/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/*
 * What is done when a system call is over: a program for each kind of call, to which on_return
 * goes on, so that the verifier looks at each of them alone. In one program it looks at all that
 * follows in every state that what came before may have left, and newer kernels give up.
 */
#pragma once

enum ending {
	END_OTHER,
	END_LOCK,
	END_SEND,
	END_RECEIVE,
	END_FILE,
	END_STREAM,
	END_OPEN,
	END_CONNECT,
	END_ACCEPT,
	END_ENTER,
	END_LEGACY,
	END_BPF,
	ENDINGS,
};

/* Most calls are short, and of no interest in themselves or by what came of them. */
static __always_inline bool dull(const struct call *c, __s64 ret)
{
	switch (c->class) {
	case CLASS_FLOCK:
	case CLASS_FCNTL:
		if (locks(c))
			return false;
		break;
	case CLASS_SENDTO:
	case CLASS_SENDMSG:
	case CLASS_RECVFROM:
	case CLASS_RECVMSG:
	case CLASS_READ:
	case CLASS_READV:
	case CLASS_OPEN:
		if (ret >= 0 || broken(ret))
			return false;
		break;
	case CLASS_BPF:
		if (attaches(c->args[0]) || (ret < 0 && requests(c->args[0])))
			return false;
		break;
	case CLASS_WRITE:
	case CLASS_WRITEV:
	case CLASS_CONNECT:
	case CLASS_ACCEPT:
	case CLASS_SETNS:
	case CLASS_UNSHARE:
	case CLASS_SETSOCKOPT:
	case CLASS_IOCTL:
		return false;
	}
	if (ret < 0 && texts(c))
		return false;
	return bpf_ktime_get_ns() - c->start < LASTED;
}

/* handle returns whether all has been told that is to be. */
#define END(name, handle)                                                  \
	SEC("tp_btf/sys_exit")                                             \
	int BPF_PROG(name, struct pt_regs *regs, long ret)                 \
	{                                                                  \
		struct task_struct *task = current_task();                 \
		struct process *p;                                         \
		struct call c;                                             \
									   \
		hold();                                                    \
		p = take(&c);                                              \
		if (p && !handle(task, p, &c, ret))                        \
			lasted(task, p, &c, ret);                          \
		let_go();                                                  \
		return 0;                                                  \
	}

static __always_inline int nothing(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	return 0;
}

END(end_other, nothing)
END(end_lock, exit_lock)
END(end_send, exit_send)
END(end_receive, exit_receive)
END(end_file, exit_file)
END(end_stream, exit_stream)
END(end_open, exit_open)
END(end_connect, exit_connect)
END(end_enter, exit_enter)
END(end_legacy, exit_legacy)
END(end_bpf, exit_bpf)

/* Whoever accepts a connection of ours is called by it, be it looked into or not. */
SEC("tp_btf/sys_exit")
int BPF_PROG(end_accept, struct pt_regs *regs, long ret)
{
	struct task_struct *task = current_task();
	struct process *p;
	struct call c;

	hold();
	p = take(&c);
	if (ret >= 0 && accepted(task, ret))
		serve_stream(task, ret);
	if (p)
		lasted(task, p, &c, ret);
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
		[END_OTHER] = (void *)&end_other,
		[END_LOCK] = (void *)&end_lock,
		[END_SEND] = (void *)&end_send,
		[END_RECEIVE] = (void *)&end_receive,
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

/* Of whoever is called, and of whom it asks in its turn, what it writes to streams, and reads from them. */
static __always_inline enum ending end_talk(const struct call *c, enum ending otherwise)
{
	struct process *p = bpf_map_lookup_elem(&processes, &c->tgid);
	struct sock *sk = p && p->agent ? sock_of(current_task(), c->args[0]) : 0;

	return sk && calls_somebody(sk) ? END_STREAM : otherwise;
}

static __always_inline enum ending ending_of(const struct call *c)
{
	switch (c->class) {
	case CLASS_FLOCK:
	case CLASS_FCNTL:
		return END_LOCK;
	case CLASS_SENDTO:
	case CLASS_SENDMSG:
		return end_talk(c, END_SEND);
	case CLASS_RECVFROM:
	case CLASS_RECVMSG:
		return end_talk(c, END_RECEIVE);
	case CLASS_READ:
	case CLASS_READV:
	case CLASS_WRITE:
	case CLASS_WRITEV:
		return end_talk(c, END_FILE);
	case CLASS_OPEN:
		return END_OPEN;
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
	return END_OTHER;
}

/* Where to go on when the thread's call is over; ENDINGS if there is nothing to do. */
static __always_inline enum ending returned(__u64 id, __u8 class, bool tracked, long ret)
{
	__u32 tid = id;
	struct call *c = tracked ? bpf_map_lookup_elem(&calls, &tid) : 0;

	if (!c || c->tgid != id >> 32 || !c->start)
		return ret >= 0 && class == CLASS_ACCEPT ? END_ACCEPT : ENDINGS;
	if (!dull(c, ret))
		return ending_of(c);
	c->start = 0;
	return ENDINGS;
}
