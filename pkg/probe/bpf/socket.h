/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Connections to other processes, and who answers them. */
#pragma once

#define EINPROGRESS 115
#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT 2
#define TCP_CLOSE 7
#define ADDRESS_MAX 110 /* sizeof(struct sockaddr_un) */

struct conn {
	struct process p;
	__u64 start;
	__u32 thread;
	__u32 ports; /* the client's and the server's, of TCP; 0 before it is up */
};

/* By the client's socket. What is left when its process is gone the reader takes away. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, struct conn);
} conns SEC(".maps");

/* TCP: the client's socket by both ports. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} ports SEC(".maps");

static __always_inline bool calls_somebody(__u16 family)
{
	return family == AF_UNIX || family == AF_INET || family == AF_INET6;
}

/* Known from the beginning: over loopback everything is over before connect returns. */
static __noinline int enter_connect(struct task_struct *task, struct process *p, struct call *c)
{
	struct sock *sk;
	struct conn conn = {};

	if (!p || !c)
		return 0;
	sk = sock_of(task, c->args[0]);
	if (!sk || !calls_somebody(family_of(sk)))
		return 0;
	p->connected = 1;
	conn.p = *p;
	conn.start = c->start;
	conn.thread = bpf_get_current_pid_tgid();
	c->conn = (__u64)sk;
	bpf_map_update_elem(&conns, &c->conn, &conn, BPF_ANY);
	return 0;
}

static __noinline int exit_connect(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	struct call_event *e;
	struct sock *sk;
	__u64 n;

	if (!p || !c || !c->conn)
		return 0;
	sk = (void *)c->conn;
	if (ret && ret != -EINPROGRESS)
		bpf_map_delete_elem(&conns, &c->conn);
	e = record(task, p, c->class, c, ret);
	if (!e)
		return 0;
	e->object = c->start;
	e->port = bpf_get_current_pid_tgid();
	e->protocol = family_of(sk);
	n = c->args[2];
	if (n > ADDRESS_MAX)
		n = ADDRESS_MAX;
	append(e, p, c->args[1], n);
	if (e->protocol == AF_UNIX) {
		struct pid *peer = BPF_CORE_READ(sk, sk_peer_pid);

		if (peer) {
			/* numbers[0] is how the initial namespace counts. */
			bpf_probe_read_kernel(&e->other.tgid, 4,
					      (void *)peer + bpf_core_field_offset(struct pid, numbers));
		}
	}
	send_record(e, p, false);
	return 0;
}

static __always_inline void about_conn(struct call_event *e, const struct conn *conn)
{
	e->object = conn->start;
	e->port = conn->thread;
}

static __noinline int enter_close(struct task_struct *task, struct process *p, struct call *c)
{
	__u64 sk;
	struct conn *conn;
	struct call_event *e;
	__u32 both;

	if (!p || !c)
		return 0;
	sk = (__u64)sock_of(task, c->args[0]);
	if (!sk)
		return 0;
	conn = bpf_map_lookup_elem(&conns, &sk);
	if (!conn || conn->p.self.tgid != p->self.tgid)
		return 0;
	e = record(task, p, c->class, c, 0);
	if (!e)
		return 0;
	about_conn(e, conn);
	both = conn->ports;
	bpf_map_delete_elem(&conns, &sk);
	if (both)
		bpf_map_delete_elem(&ports, &both);
	send_record(e, p, false);
	return 0;
}

static __always_inline __u32 both_ports(__u16 client, __u16 server)
{
	return (__u32)client << 16 | server;
}

static __always_inline __u16 swap(__be16 n)
{
	return n << 8 | n >> 8;
}

/* A server that is called from a plugin's tree is followed as the plugin is: what it runs
 * and asks of the kernel may be done for the plugin. The reader ends that. */
static __always_inline void follow(struct task_struct *task, const struct task_key *server, const struct process *client)
{
	__u32 tgid = server->tgid, inum;
	struct process p = {}, *known = bpf_map_lookup_elem(&processes, &tgid);

	if (known) {
		if (known->agent)
			known->bytes = 0;
		return;
	}
	if (client->agent >= agent_depth || !server->pid)
		return;
	p.self = *server;
	p.root = *server;
	p.agent = client->agent + 1;
	p.on_node = privileged_on_node(task);
	netns_of(task, &p.home, &inum);
	if (track(tgid, &p, BPF_NOEXIST))
		lose(LOST_TABLE, &client->root);
}

/* Called for whoever accepts a connection on the node: is it one of ours? */
static __noinline int accepted(struct task_struct *task, __s64 fd)
{
	struct sock *sk = sock_of(task, fd);
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct call_event *e;
	struct conn *conn;
	struct process *known;
	__u64 client = 0, *found;
	__u32 server;
	__u16 family;

	if (!sk)
		return 0;
	family = family_of(sk);
	if (family == AF_UNIX) {
		client = (__u64)BPF_CORE_READ((struct unix_sock *)sk, peer);
	} else if (family == AF_INET || family == AF_INET6) {
		__u32 both = both_ports(swap(BPF_CORE_READ(sk, __sk_common.skc_dport)),
					BPF_CORE_READ(sk, __sk_common.skc_num));

		found = bpf_map_lookup_elem(&ports, &both);
		if (found)
			client = *found;
	}
	if (!client)
		return 0;
	conn = bpf_map_lookup_elem(&conns, &client);
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
	bpf_probe_read_kernel(e->comm, sizeof(e->comm), leader->comm);
	follow(task, &e->other, &conn->p);
	send_record(e, &conn->p, false);
	return 0;
}

/* TCP goes from one state to the next. */
static __always_inline void tcp_state(struct sock *sk, int old, int new)
{
	__u64 key = (__u64)sk, cookie = 0, *since;
	struct net *net;
	struct conn *conn = bpf_map_lookup_elem(&conns, &key);
	struct call_event *e;

	if (conn && new == TCP_ESTABLISHED) {
		conn->ports = both_ports(BPF_CORE_READ(sk, __sk_common.skc_num),
					 swap(BPF_CORE_READ(sk, __sk_common.skc_dport)));
		bpf_map_update_elem(&ports, &conn->ports, &key, BPF_ANY);
	}
	if (conn && old == TCP_SYN_SENT && new == TCP_CLOSE) {
		e = record(current_task(), &conn->p, CLASS_REFUSED, 0, 0);
		if (e) {
			about_conn(e, conn);
			send_record(e, &conn->p, false);
		}
	}
	if (new != TCP_ESTABLISHED)
		return;
	net = BPF_CORE_READ(sk, __sk_common.skc_net.net);
	cookie = cookie_of(net);
	since = bpf_map_lookup_elem(&awaited, &cookie);
	if (!cookie || !since)
		return;
	struct process nobody = {};

	e = record(current_task(), &nobody, CLASS_FIRST, 0, 0);
	if (!e)
		return;
	bpf_map_delete_elem(&awaited, &cookie);
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
	send_record(e, &nobody, true);
}
