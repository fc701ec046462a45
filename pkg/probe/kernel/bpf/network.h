/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Requests that change the network: netlink, iptables' own sockets, ioctls. */
#pragma once

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define AF_NETLINK 16
#define NETLINK_ROUTE 0
#define NETLINK_NETFILTER 12
#define NLMSG_ERROR 2
#define RTM_NEWLINK 16
#define RTM_NEWADDR 20
#define MSG_PEEK 2

/* The socket behind a file, or none. */
static __always_inline struct sock *sock_in(struct file *file)
{
	struct socket *socket;

	if (!file || (LOAD(LOAD(file, file, f_inode), inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = LOAD(file, file, private_data);
	return LOAD(socket, socket, sk);
}

/* The socket behind a descriptor. */
static __always_inline struct sock *sock_of(struct task_struct *task, __u32 fd)
{
	return sock_in(file_of(task, fd));
}

static __always_inline __u16 family_of(struct sock *sk)
{
	return LOAD(sk, sock, __sk_common.skc_family);
}

/* Record of a netlink request or answer. */
static __always_inline struct call_event *netlink_record(struct task_struct *task, struct process *p,
							  struct call *c, __s64 ret, struct sock *sk)
{
	struct call_event *e;

	e = record(task, p, c->class, c, ret);
	if (!e)
		return 0;
	e->protocol = BPF_CORE_READ(sk, sk_protocol);
	e->port = BPF_CORE_READ((struct netlink_sock *)sk, portid);
	namespace_of(e, BPF_CORE_READ(sk, __sk_common.skc_net.net));
	return e;
}

/* Whether it is a single query: rtnetlink's types are NEW, DEL, GET, SET in turn. */
static __always_inline bool is_question(const struct nlmsghdr *m, __u16 protocol, __s64 ret)
{
	if (m->len + 3ULL < ret) /* more follow */
		return false;
	if (protocol == NETLINK_ROUTE)
		return m->type >= RTM_NEWLINK && (m->type & 3) == 2;
	return protocol == NETLINK_NETFILTER && m->type >> 8 < SUBSYSTEMS && (m->type & 0xff) < 64 &&
	       questions_of[(m->type >> 8) & (SUBSYSTEMS - 1)] >> (m->type & 0xff) & 1;
}

/* Most requests of plugins are short queries, of which only number and time matter: libnftables
 * sends 1,350 for a pod. They are counted here, and reported when their image ends. An agent
 * does not end. */
static __always_inline bool merely_asks(struct process *p, const struct call *c, struct sock *sk, __s64 ret)
{
	__u64 took = bpf_ktime_get_ns() - c->start, from = c->args[1];
	struct nlmsghdr first = {};

	if (p->agent || took >= min_span)
		return false;
	if (c->class == CLASS_SENDMSG) {
		struct msghdr m = {};
		struct iovec v = {};

		if (bpf_probe_read_user(&m, sizeof(m), (void *)from) ||
		    bpf_probe_read_user(&v, sizeof(v), (void *)m.iov) || v.len < sizeof(first))
			return false;
		from = v.base;
	}
	if (bpf_probe_read_user(&first, sizeof(first), (void *)from) ||
	    !is_question(&first, LOAD(sk, sock, sk_protocol), ret))
		return false;
	__sync_fetch_and_add(&p->asked, 1);
	__sync_fetch_and_add(&p->asking, took);
	return true;
}

static __noinline int exit_send(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	struct nlmsghdr *first;
	struct sock *sk;

	if (!p || !c || ret < 16)
		return 0;
	sk = sock_of(task, c->args[0]);
	if (!sk || family_of(sk) != AF_NETLINK)
		return 0;
	if (merely_asks(p, c, sk, ret))
		return 1;
	e = netlink_record(task, p, c, ret, sk);
	if (!e)
		return 0;
	if (c->class == CLASS_SENDTO)
		append(e, p, c->args[1], ret);
	else
		append_message(e, p, c->args[1], ret);
	/* Only the kind of a query matters. */
	first = (void *)e->data;
	if (e->protocol == NETLINK_ROUTE && (first->type & 3) == 2 && e->len > 64) {
		e->len = 64;
		e->cut = 0;
	}
	send_record(e, p, false);
	return 0;
}

#define SOL_IP 0
#define SOL_IPV6 41
#define IPT_SO_SET_REPLACE 64 /* the same for IPv6 */
#define TABLE_NAME 32	      /* XT_TABLE_MAXNAMELEN */
#define IFREQ 40

static __noinline int exit_legacy(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	struct sock *sk;
	__u64 from = c ? c->args[3] : 0, n = TABLE_NAME;

	if (!p || !c)
		return 0;
	if (c->class == CLASS_IOCTL) {
		from = c->args[2];
		n = IFREQ;
		if ((c->args[1] & 0xff00) != 0x8900) /* include/uapi/linux/sockios.h */
			return 0;
	} else if (c->args[2] != IPT_SO_SET_REPLACE || (c->args[1] != SOL_IP && c->args[1] != SOL_IPV6)) {
		return 0;
	}
	sk = sock_of(task, c->args[0]);
	if (!sk)
		return 0;
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 0;
	e->protocol = family_of(sk);
	namespace_of(e, BPF_CORE_READ(sk, __sk_common.skc_net.net));
	append(e, p, from, n);
	send_record(e, p, false);
	return 0;
}
