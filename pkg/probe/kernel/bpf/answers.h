/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Netlink requests and the kernel's answers: when the request was sent, the answer is in the
 * socket's queue, so reads of netlink need no program. */
#pragma once

/* Examined answers per request: the first, or the last if others are in the queue. */
#define ANSWERS 16

/* Answers that were in the queue before are not repeated. The number is stored in a call's conn,
 * which requests do not use. */
static __always_inline __u32 answers_of(struct sock *sk)
{
	return sk && family_of(sk) == AF_NETLINK ? LOAD(sk, sock, sk_receive_queue.qlen) : 0;
}

/* Only refusals, states of IPv6 addresses, and names of interfaces matter. The name comes first. */
#define LINK_MAX 64

static __noinline int tell_answer(struct task_struct *task, struct process *p, struct call *c, struct sock *sk, struct sk_buff *skb)
{
	__u64 n = LOAD(skb, sk_buff, len);
	struct nlmsghdr head = {};
	struct call_event *e;
	__s32 error = 0;
	void *data = LOAD(skb, sk_buff, data);

	if (!p || !c || n < sizeof(head) || bpf_probe_read_kernel(&head, sizeof(head), data))
		return 0;
	if (head.type == RTM_NEWLINK && n > LINK_MAX)
		n = LINK_MAX;
	else if (head.type != NLMSG_ERROR && head.type != RTM_NEWADDR)
		return 0;
	if (head.type == NLMSG_ERROR && head.len + 3ULL >= n && !bpf_probe_read_kernel(&error, sizeof(error), data + sizeof(head)) && !error)
		return 0; /* granted */
	e = netlink_record(task, p, c, n, sk);
	if (!e)
		return 0;
	HIDE(n);
	if (n > DATA_MAX) {
		n = DATA_MAX;
		e->cut = 1;
	}
	if (p->bytes >= BYTES_MAX || bpf_probe_read_kernel(e->data, n, data))
		return 0;
	e->len = n;
	p->bytes += n;
	send_record(e, p, false);
	return 0;
}

/* Another thread of the process may read the socket and free the data meanwhile: then reads fail
 * or give garbage, which the decoder drops. */
static __noinline int tell_answers(struct task_struct *task, struct process *p, struct call *c, struct sock *sk)
{
	struct sk_buff *head = (void *)sk + bpf_core_field_offset(struct sock, sk_receive_queue), *skb;
	__u64 before, all, i;

	if (!p || !c || !sk || family_of(sk) != AF_NETLINK)
		return 0;
	before = c->conn;
	c->class = CLASS_RECVFROM;
	c->start = 0;
	skb = before ? LOAD(sk, sock, sk_receive_queue.prev) : LOAD(sk, sock, sk_receive_queue.next);
	all = answers_of(sk);
	for (i = 1; before && i < ANSWERS; i++) {
		if (!skb || skb == head || i + before >= all)
			break;
		skb = LOAD(skb, sk_buff, prev);
	}
	for (i = 0; i < ANSWERS; i++) {
		if (!skb || skb == head || i + before >= all)
			return 0;
		tell_answer(task, p, c, sk, skb);
		skb = LOAD(skb, sk_buff, next);
	}
	return 0;
}

static __always_inline int end_request(struct task_struct *task, struct process *p, struct call *c, __s64 ret, struct sock *sk)
{
	if (!exit_send(task, p, c, ret))
		lasted(task, p, c, ret);
	tell_answers(task, p, c, sk);
	return 1;
}

#ifdef FUNCTIONS
/* Requests of followed processes in progress: at 0 the end of other requests is ignored. A
 * missed end only costs time; the reader resets it if no process is followed. */
__u64 underway SEC(".data.underway");

static __noinline int request(struct socket *socket)
{
	struct call c = {};
	struct process *p;

	hold();
	p = caller_here(&c);
	if (p && is_one_of(c.class, CLASS_SENDTO, CLASS_SENDMSG)) {
		c.conn = answers_of(BPF_CORE_READ(socket, sk));
		if (keep(&c))
			__sync_fetch_and_add(&underway, 1);
	}
	let_go();
	return 0;
}

SEC("fentry/netlink_sendmsg")
int on_request(unsigned long long *ctx)
{
	return may_be_ours() ? request((void *)ctx[0]) : 0;
}

static __noinline int request_end(struct socket *socket, __s64 ret)
{
	struct task_struct *task = current_task();
	struct call c = {};
	struct process *p;

	if (!may_be_ours())
		return 0;
	hold();
	p = take(&c);
	if (is_one_of(c.class, CLASS_SENDTO, CLASS_SENDMSG))
		__sync_fetch_and_add(&underway, -1);
	if (p && is_one_of(c.class, CLASS_SENDTO, CLASS_SENDMSG))
		end_request(task, p, &c, ret, BPF_CORE_READ(socket, sk));
	let_go();
	return 0;
}

SEC("fexit/netlink_sendmsg")
int on_request_end(unsigned long long *ctx)
{
	return underway ? request_end((void *)ctx[0], (int)RETURNED(ctx)) : 0;
}
#endif
