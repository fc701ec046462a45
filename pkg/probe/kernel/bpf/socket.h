/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Connections to other processes, and the processes that answer them. */
#pragma once

#define EINPROGRESS 115
#define SOCK_STREAM 1
#define SOCK_SEQPACKET 5
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_MPTCP 262
#define DNS 53
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define ADDRESS_MAX 110 /* sizeof(struct sockaddr_un) */

struct conn {
	struct process p;
	__u64 start;
	__u64 ino; /* of the client's socket, whose address in memory is soon reused */
	__u32 thread;
	__u32 before; /* from before the gate was opened, with an unknown server (before.h) */
};

#define CONNS 4096

/* By the client's socket, up to a quarter for one root. The reader removes leftovers of exited
 * processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CONNS);
	__type(key, __u64);
	__type(value, struct conn);
} conns SEC(".maps");

/* What both ends of a TCP connection have in common, IPv4 as mapped into IPv6. Any process can
 * choose addresses and ports in its own network namespace. But each side draws the sequence
 * number of its first byte itself (RFC 6528), so equal ones prove that the two sockets exchanged
 * these packets. If a translation rewrote the addresses, the ends do not match. For a connection
 * from before the gate was opened (before.h) the first numbers may be unknown. Then its ends
 * only match within one network namespace, where addresses and ports are unique. */
struct pair {
	__u32 client[4], server[4];
	__u32 client_first, server_first; /* 0 unless netns is */
	__be16 client_port, server_port;
	__u32 netns; /* inode number; 0: the first bytes distinguish it */
};

struct half {
	__u64 sk; /* the client's */
	__u64 ino;
};

/* Established TCP connections. A leftover leads to no socket of that inode. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct pair);
	__type(value, struct half);
} pairs SEC(".maps");

/* The inode of a socket's file; 0 if no process has it open. */
static __always_inline __u64 inode_of(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
}

static __always_inline bool is_tcp(struct sock *sk)
{
	__u16 family = family_of(sk);

	return (family == AF_INET || family == AF_INET6) && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP;
}

static __always_inline bool is_udp(struct sock *sk)
{
	__u16 family = family_of(sk);

	return (family == AF_INET || family == AF_INET6) && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_UDP;
}

/* A datagram socket only sets a destination, without an answer, which matters for DNS. */
static __always_inline bool calls_somebody(struct sock *sk)
{
	__u16 family = family_of(sk);
	__s16 type = BPF_CORE_READ(sk, sk_socket, type);

	if (family == AF_UNIX)
		return type == SOCK_STREAM || type == SOCK_SEQPACKET;
	return is_tcp(sk) || is_udp(sk) || ((family == AF_INET || family == AF_INET6) && BPF_CORE_READ(sk, sk_protocol) == IPPROTO_MPTCP);
}

/* The connection that a socket began; none if another socket has its address in memory now. */
static __always_inline struct conn *conn_of(__u64 sk)
{
	struct conn *conn = bpf_map_lookup_elem(&conns, &sk);

	return conn && conn->ino == inode_of((void *)sk) ? conn : 0;
}

/* False if there is no room. */
static __always_inline bool add_conn(__u64 sk, const struct conn *conn)
{
	struct account *a = bpf_map_lookup_elem(&accounts, &conn->p.root);
	long failed;

	if (a && a->conns >= CONNS / 4)
		return false;
	failed = bpf_map_update_elem(&conns, &sk, conn, BPF_NOEXIST);
	if (!failed && a)
		__sync_fetch_and_add(&a->conns, 1);
	/* of a closed socket, or of one that connects again */
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

/* For the other end of an accepted unix socket the process that called connect, of a connected
 * one that called listen, in the initial PID namespace; 0 if unknown. */
static __always_inline __u32 caller_of_other_end(struct sock *sk)
{
	struct pid *pid = BPF_CORE_READ(sk, sk_peer_pid);
	__u32 tgid = 0;

	if (pid) /* numbers[0] is of the initial namespace */
		bpf_probe_read_kernel(&tgid, sizeof(tgid), (void *)pid + bpf_core_field_offset(struct pid, numbers));
	return tgid;
}

static __always_inline void connects(struct process *p)
{
	if (p->connected)
		return;
	p->connected = 1;
	count_slot(p->self.tgid, TALKS);
}

/* Stored at the start: over loopback everything ends before connect returns. */
static __noinline int enter_connect(struct task_struct *task, struct process *p, struct call *c)
{
	struct sock *sk;
	struct conn conn = {};

	if (!p || !c)
		return 0;
	sk = sock_of(task, c->args[0]);
	/* A further call only asks for the result. */
	if (!sk || !calls_somebody(sk) || BPF_CORE_READ(sk, sk_socket, state) != SS_UNCONNECTED)
		return 0;
	connects(p);
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

static __always_inline __u16 swap(__be16 n)
{
	return n << 8 | n >> 8;
}

static __noinline int exit_connect(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	struct sock *sk;
	__u64 n;

	if (!p || !c)
		return 1;
	if (!c->conn) /* a further call */
		return 0;
	sk = (void *)c->conn;
	if (ret < 0 && BPF_CORE_READ(sk, sk_socket, state) == SS_CONNECTING)
		ret = -EINPROGRESS; /* also after a signal */
	if (ret && ret != -EINPROGRESS)
		remove_conn(c->conn, &p->root);
	if (is_udp(sk) && BPF_CORE_READ(sk, __sk_common.skc_dport) != swap(DNS)) {
		remove_conn(c->conn, &p->root);
		return 1;
	}
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 1;
	e->object = c->start;
	e->port = bpf_get_current_pid_tgid();
	e->protocol = family_of(sk);
	e->out = is_udp(sk);
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

/* The process closes its end. */
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

/* The client's end, after the answer to its SYN, before any data. */
static __always_inline void pair_of_client(struct sock *sk, struct pair *pair)
{
	addresses_of(sk, pair->client, pair->server);
	pair->client_port = swap(BPF_CORE_READ(sk, __sk_common.skc_num));
	pair->server_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	pair->client_first = BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
	pair->server_first = BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
}

/* The server's end, at accept, before any data. */
static __always_inline void pair_of_server(struct sock *sk, struct pair *pair)
{
	addresses_of(sk, pair->server, pair->client);
	pair->server_port = swap(BPF_CORE_READ(sk, __sk_common.skc_num));
	pair->client_port = BPF_CORE_READ(sk, __sk_common.skc_dport);
	pair->server_first = BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
	pair->client_first = BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
}

/* The same for an older connection. */
static __always_inline void pair_within(struct sock *sk, struct pair *pair)
{
	pair->client_first = 0;
	pair->server_first = 0;
	pair->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

/* Follows a server that a plugin's tree calls, because its commands and requests may be for the
 * plugin. It must be able to change the node's network anyway: a plugin may be made to call any
 * process. The reader stops it. */
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
	if (failed && failed != -EEXIST) /* another thread also accepts */
		lose(LOST_TABLE, &client->root);
}

/* The connection of a pair; none if its client is another socket now. */
static __always_inline struct conn *conn_in(const struct pair *pair)
{
	struct half *half = bpf_map_lookup_elem(&pairs, pair);
	struct conn *conn = half ? bpf_map_lookup_elem(&conns, &half->sk) : 0;

	return conn && conn->ino == half->ino ? conn : 0;
}

/* The connection whose other end was accepted; none if no followed process began it. */
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

/* Reports and follows the server of a connection. */
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
	/* The reader may have named it differently, by /proc. */
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

/* Called for each accept on the node: whether the connection is ours. */
static __always_inline int accepted(struct task_struct *task, __s64 fd)
{
	struct sock *sk = sock_of(task, fd);

	return sk ? answered(task, conn_to(sk)) : 0;
}

/* TCP changes its state. */
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
	/* Without an error the client gave up. */
	if (conn && new == TCP_CLOSE) {
		__s64 failed = BPF_CORE_READ(sk, sk_err);

		e = failed ? record_in(OF_STATE, &conn->p, CLASS_REFUSED, 0, -failed) : 0;
		if (e) {
			about_conn(e, conn);
			send_record(e, &conn->p, false);
		}
	}
	/* The end also proves that there was a connection: the start is missed if an interrupt
	 * comes while this program runs on the CPU, or the record finds no room. */
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
