/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Connections to other processes, and who answers them. */
#pragma once

#define EINPROGRESS 115
#define SOCK_STREAM 1
#define SOCK_SEQPACKET 5
#define IPPROTO_TCP 6
#define IPPROTO_MPTCP 262
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define ADDRESS_MAX 110 /* sizeof(struct sockaddr_un) */

struct conn {
	struct process p;
	__u64 start;
	__u64 ino; /* of the client's socket: its place in memory is soon another one's */
	__u32 thread;
	__u32 before; /* it was there before the gate was opened, and who answers is to be looked for (before.h) */
};

#define CONNS 4096

/* By the client's socket; a quarter for one root. What is left when its process is gone the
 * reader takes away. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CONNS);
	__type(key, __u64);
	__type(value, struct conn);
} conns SEC(".maps");

/* What both ends of a TCP connection agree on, IPv4 as mapped into IPv6. Addresses and
 * ports anybody can have in a network namespace of its own. The numbers that the first bytes
 * have in either direction nobody can choose for both: each kernel side draws its own
 * (RFC 6528), so that they are equal only if the two sockets exchanged these packets. Where
 * a translation rewrote the addresses on the way the ends do not agree, and are no pair.
 *
 * Of a connection from before the gate was opened (before.h) the first bytes may be gone. Only within one network
 * namespace are its ends a pair: there no two connections have the same addresses and ports. */
struct pair {
	__u32 client[4], server[4];
	__u32 client_first, server_first; /* 0 if netns is not */
	__be16 client_port, server_port;
	__u32 netns; /* inode number; 0: told apart by the first bytes */
};

struct half {
	__u64 sk; /* the client's */
	__u64 ino;
};

/* TCP connections that are up. An entry that is left behind leads to no socket of that inode. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct pair);
	__type(value, struct half);
} pairs SEC(".maps");

/* The inode that a socket is used by; 0 if nobody does any more. */
static __always_inline __u64 inode_of(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
}

static __always_inline bool is_tcp(struct sock *sk)
{
	__u16 family = family_of(sk);

	return (family == AF_INET || family == AF_INET6) && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP;
}

/* A datagram socket is only told where to send to: nobody answers that. */
static __always_inline bool calls_somebody(struct sock *sk)
{
	__u16 family = family_of(sk);
	__s16 type = BPF_CORE_READ(sk, sk_socket, type);

	if (family == AF_UNIX)
		return type == SOCK_STREAM || type == SOCK_SEQPACKET;
	return is_tcp(sk) || ((family == AF_INET || family == AF_INET6) && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_MPTCP);
}

/* The connection that a socket began; none if it is of another one that was in the same
 * place before. */
static __always_inline struct conn *conn_of(__u64 sk)
{
	struct conn *conn = bpf_map_lookup_elem(&conns, &sk);

	return conn && conn->ino == inode_of((void *)sk) ? conn : 0;
}

/* False if there is no room for it. */
static __always_inline bool add_conn(__u64 sk, const struct conn *conn)
{
	struct account *a = bpf_map_lookup_elem(&accounts, &conn->p.root);
	long failed;

	if (a && a->conns >= CONNS / 4)
		return false;
	failed = bpf_map_update_elem(&conns, &sk, conn, BPF_NOEXIST);
	if (!failed && a)
		__sync_fetch_and_add(&a->conns, 1);
	/* Of a socket that is gone, or that connects once more. */
	return !failed || !bpf_map_update_elem(&conns, &sk, conn, BPF_EXIST);
}

static __always_inline void remove_conn(__u64 sk, const struct task_key *root)
{
	struct account *a;

	if (bpf_map_delete_elem(&conns, &sk))
		return;
	a = bpf_map_lookup_elem(&accounts, root);
	if (a)
		__sync_fetch_and_add(&a->conns, -1);
}

/* Who called connect for the other end of a unix socket that was accepted, or listen for that of one that
 * connected, as the initial PID namespace counts; 0 if that is not known. */
static __always_inline __u32 caller_of_other_end(struct sock *sk)
{
	struct pid *pid = BPF_CORE_READ(sk, sk_peer_pid);
	__u32 tgid = 0;

	if (pid) /* numbers[0] is how the initial namespace counts */
		bpf_probe_read_kernel(&tgid, sizeof(tgid), (void *)pid + bpf_core_field_offset(struct pid, numbers));
	return tgid;
}

/* Known from the beginning: over loopback everything is over before connect returns. */
static __noinline int enter_connect(struct task_struct *task, struct process *p, struct call *c)
{
	struct sock *sk;
	struct conn conn = {};

	if (!p || !c)
		return 0;
	sk = sock_of(task, c->args[0]);
	if (!sk || !calls_somebody(sk))
		return 0;
	p->connected = 1;
	conn.p = *p;
	conn.start = c->start;
	conn.ino = inode_of(sk);
	conn.thread = bpf_get_current_pid_tgid();
	if (add_conn((__u64)sk, &conn))
		c->conn = (__u64)sk;
	else
		lose(LOST_CONNS, &p->root);
	return 0;
}

static __noinline int exit_connect(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	struct sock *sk;
	__u64 n;

	if (!p || !c || !c->conn)
		return 1;
	sk = (void *)c->conn;
	if (ret && ret != -EINPROGRESS)
		remove_conn(c->conn, &p->root);
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 1;
	e->object = c->start;
	e->port = bpf_get_current_pid_tgid();
	e->protocol = family_of(sk);
	n = c->args[2];
	if (n > ADDRESS_MAX)
		n = ADDRESS_MAX;
	append(e, p, c->args[1], n);
	if (e->protocol == AF_UNIX)
		e->other.tgid = caller_of_other_end(sk);
	send_record(e, p, false);
	return 1;
}

static __always_inline void about_conn(struct call_event *e, const struct conn *conn)
{
	e->object = conn->start;
	e->port = conn->thread;
}

/* The process hangs up. */
static __always_inline int close_conn(struct task_struct *task, struct process *p, struct call *c, __u64 sk)
{
	struct conn *conn;
	struct call_event *e;

	if (!sk)
		return 0;
	conn = conn_of(sk);
	if (!conn || conn->p.self.tgid != p->self.tgid)
		return 0;
	e = record(task, p, c->class, c, 0);
	if (!e)
		return 0;
	about_conn(e, conn);
	remove_conn(sk, &p->root);
	send_record(e, p, false);
	return 0;
}

#ifndef FUNCTIONS
static __noinline int enter_close(struct task_struct *task, struct process *p, struct call *c)
{
	if (!p || !c)
		return 0;
	return close_conn(task, p, c, (__u64)sock_of(task, c->args[0]));
}
#endif

static __always_inline __u16 swap(__be16 n)
{
	return n << 8 | n >> 8;
}

/* Both addresses of a TCP socket, IPv4 as mapped into IPv6 (RFC 4291, 2.5.5.2). */
static __always_inline void addresses_of(struct sock *sk, __u32 own[4], __u32 other[4])
{
	if (family_of(sk) == AF_INET6) {
		bpf_probe_read_kernel(own, 16,
				      (void *)sk + bpf_core_field_offset(struct sock, __sk_common.skc_v6_rcv_saddr));
		bpf_probe_read_kernel(other, 16,
				      (void *)sk + bpf_core_field_offset(struct sock, __sk_common.skc_v6_daddr));
		return;
	}
	__builtin_memcpy(&own[2], "\0\0\xff\xff", 4);
	own[3] = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	__builtin_memcpy(&other[2], "\0\0\xff\xff", 4);
	other[3] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
}

/* The client's end, when the answer to its SYN has come: nothing was sent so far. */
static __always_inline void pair_of_client(struct sock *sk, struct pair *pair)
{
	addresses_of(sk, pair->client, pair->server);
	pair->client_port = swap(BPF_CORE_READ(sk, __sk_common.skc_num));
	pair->server_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	pair->client_first = BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
	pair->server_first = BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
}

/* The server's end, when it is accepted: nobody has read from it or written to it so far. */
static __always_inline void pair_of_server(struct sock *sk, struct pair *pair)
{
	addresses_of(sk, pair->server, pair->client);
	pair->server_port = swap(BPF_CORE_READ(sk, __sk_common.skc_num));
	pair->client_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	pair->server_first = BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
	pair->client_first = BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
}

/* The same of one that is older: any time after. */
static __always_inline void pair_within(struct sock *sk, struct pair *pair)
{
	pair->client_first = 0;
	pair->server_first = 0;
	pair->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

/* A server that is called from a plugin's tree is followed as the plugin is: what it runs
 * and asks of the kernel may be done for the plugin. That is only believed of whoever could
 * change the node's network anyway; a plugin may be led to call anybody. The reader ends it. */
static __always_inline void follow(struct task_struct *task, const struct task_key *server, const struct process *client)
{
	__u64 cookie;
	__u32 tgid = server->tgid;
	long failed;
	struct process p = {}, *known = bpf_map_lookup_elem(&processes, &tgid);

	if (known) {
		if (known->agent)
			known->bytes = 0;
		return;
	}
	if (client->agent >= agent_depth || !server->pid || !privileged_on_node(task))
		return;
	p.self = *server;
	p.root = *server;
	p.agent = client->agent + 1;
	p.on_node = true;
	p.since = bpf_ktime_get_ns();
	p.session = visible_session(task);
	p.mounts = mounts_of(task);
	netns_of(task, &cookie, &p.home);
	failed = track(tgid, &p, BPF_NOEXIST);
	if (failed && failed != -EEXIST) /* another thread of its accepts, too */
		lose(LOST_TABLE, &client->root);
}

/* The connection of that pair; none if its client is another one by now. */
static __always_inline struct conn *conn_in(const struct pair *pair)
{
	struct half *half = bpf_map_lookup_elem(&pairs, pair);
	struct conn *conn = half ? bpf_map_lookup_elem(&conns, &half->sk) : 0;

	return conn && conn->ino == half->ino ? conn : 0;
}

/* The connection whose other end was just accepted; none if nobody we follow began it. */
static __always_inline struct conn *conn_to(struct sock *sk)
{
	if (family_of(sk) == AF_UNIX)
		return conn_of((__u64)BPF_CORE_READ((struct unix_sock *)sk, peer));
	if (is_tcp(sk)) {
		struct pair pair = {};
		struct conn *conn;

		pair_of_server(sk, &pair);
		conn = conn_in(&pair);
		if (conn)
			return conn;
		pair_within(sk, &pair);
		return conn_in(&pair);
	}
	return 0;
}

/* Tells who answers a connection, and follows them. */
static __noinline int answered(struct task_struct *task, struct conn *conn)
{
	struct call_event *e;
	struct process *known;
	struct task_struct *leader;
	__u32 server;

	if (!conn)
		return 0;
	e = record(task, &conn->p, CLASS_ACCEPT, 0, 0);
	if (!e)
		return 0;
	about_conn(e, conn);
	key_of(task, &e->other);
	/* The reader, which knows it from /proc, may have named it otherwise. */
	server = e->other.tgid;
	known = bpf_map_lookup_elem(&processes, &server);
	if (known)
		e->other = known->self;
	leader = BPF_CORE_READ(task, group_leader);
	bpf_probe_read_kernel(e->comm, sizeof(e->comm), (void *)leader + bpf_core_field_offset(struct task_struct, comm));
	follow(task, &e->other, &conn->p);
	send_record(e, &conn->p, false);
	return 1;
}

/* Called for whoever accepts a connection on the node: whether it is one of ours. */
static __always_inline int accepted(struct task_struct *task, __s64 fd)
{
	struct sock *sk = sock_of(task, fd);

	return sk ? answered(task, conn_to(sk)) : 0;
}

/* TCP goes from one state to the next. */
static __always_inline void tcp_state(struct sock *sk, int old, int new)
{
	__u64 key = (__u64)sk, cookie = 0, *since;
	struct net *net;
	struct conn *conn = old == TCP_SYN_SENT ? conn_of(key) : 0;
	struct call_event *e;

	if (conn && new == TCP_ESTABLISHED && is_tcp(sk)) {
		struct pair pair = {};
		struct half half = {.sk = key, .ino = conn->ino};

		pair_of_client(sk, &pair);
		bpf_map_update_elem(&pairs, &pair, &half, BPF_ANY);
	}
	/* Without an error it was given up by the client itself. */
	if (conn && new == TCP_CLOSE) {
		__s64 failed = BPF_CORE_READ(sk, sk_err);

		e = failed ? record_in(OF_STATE, &conn->p, CLASS_REFUSED, 0, -failed) : 0;
		if (e) {
			about_conn(e, conn);
			send_record(e, &conn->p, false);
		}
	}
	/* Its end says, too, that there was a connection: while this program runs the kernel does not run it
	 * again on that CPU for an interrupt, and a record may find no room. */
	if (new != TCP_ESTABLISHED && old != TCP_ESTABLISHED)
		return;
	net = BPF_CORE_READ(sk, __sk_common.skc_net.net);
	cookie = cookie_of(net);
	since = bpf_map_lookup_elem(&awaited, &cookie);
	if (!cookie || !since)
		return;
	struct process nobody = {};

	e = record_in(OF_STATE, &nobody, CLASS_FIRST, 0, 0);
	if (!e)
		return;
	namespace_of(e, net);
	e->protocol = BPF_CORE_READ(sk, __sk_common.skc_family);
	e->args[0] = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
	e->args[1] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	e->args[2] = BPF_CORE_READ(sk, __sk_common.skc_num);
	e->args[3] = swap(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (e->protocol == AF_INET6) {
		bpf_probe_read_kernel(e->data, 16,
				      (void *)sk + bpf_core_field_offset(struct sock, __sk_common.skc_v6_rcv_saddr));
		bpf_probe_read_kernel(e->data + 16, 16,
				      (void *)sk + bpf_core_field_offset(struct sock, __sk_common.skc_v6_daddr));
		e->len = 32;
	}
	if (send_record(e, &nobody, true))
		bpf_map_delete_elem(&awaited, &cookie);
}
