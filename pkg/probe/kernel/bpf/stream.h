/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Requests of agents over streams that are usually old: an agent writes, and reads the answer. A
 * process that waits for the agent also waits for that. */
#pragma once

#define EPIPE 32
#define ECONNABORTED 103
#define ECONNRESET 104
#define ETIMEDOUT 110
#define PIDTYPE_TGID 1 /* include/linux/pid_types.h, since 4.19 */

/* A stream socket of a followed agent, or of a peer that it waits for. */
struct stream {
	struct task_key self;  /* the last writer, or the first user */
	struct task_key root;  /* whose share counts */
	struct task_key other; /* the other end's process; see peer_of */
	__u64 ino;	       /* of the socket, whose address in memory is soon reused */
	__u64 other_ino;       /* unix: of the other end; 0: closed */
	__u64 wrote;	       /* first write since the last read; 0: none */
	__u64 last;	       /* last write; 0: none while followed */
	__u64 read;	       /* last read; 0: none while followed */
	__u32 own_address[4], other_address[4];
	__u16 own_port, other_port; /* TCP */
	__u16 family;
	__u8 serves; /* it is asked here, and does not ask */
	__u8 pad;
	__u32 thread; /* that wrote */
	__u32 span;   /* the first half of what tell_span last reported */
	__u64 dialled; /* time and thread of the connect, if seen */
	__u32 dialler;
	__u32 netns;
};

#define STREAMS 4096

/* By socket, up to a quarter for one root. The reader removes leftovers of exited and unfollowed
 * processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STREAMS);
	__type(key, __u64);
	__type(value, struct stream);
} streams SEC(".maps");

/* The reader's knowledge of a stream's ends, by inode. */
enum role {
	ROLE_SERVES = 1, /* a server, followed because it is asked here */
	ROLE_ASKS,	 /* it may wait for the other end */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 256);
	__type(key, __u64);
	__type(value, __u32);
} roles SEC(".maps");

static __always_inline enum role role_of(__u64 ino)
{
	__u32 *role = bpf_map_lookup_elem(&roles, &ino);

	return role ? *role : 0;
}

/* The process at the other end of a unix socket: a client's called listen, a server's called
 * connect. Under socket activation another process answers. None if it is gone. */
static __always_inline struct task_struct *peer_of(struct sock *sk)
{
	struct pid *pid = family_of(sk) == AF_UNIX ? BPF_CORE_READ(sk, sk_peer_pid) : 0;
	struct hlist_node *node = BPF_CORE_READ(pid, tasks[PIDTYPE_TGID].first);

	return pid && node ? (void *)node - bpf_core_field_offset(struct task_struct, pid_links[PIDTYPE_TGID]) : 0;
}

/* The address of a unix socket's other end; usually none if it dialled. */
static __always_inline struct unix_address *peer_address(struct sock *sk)
{
	struct unix_sock *peer = (void *)BPF_CORE_READ((struct unix_sock *)sk, peer);

	return BPF_CORE_READ(peer, addr);
}

/* Whether a stream was accepted, by data that only the kernel sets: a client can bind any
 * address and port. An accepted unix socket shares its listener's address; if the listener is
 * gone, the dialling end usually has none. An accepted TCP socket has its listener's backlog; if
 * that is 0, a port below the ephemeral range (32768, ip_local_port_range) decides. */
static __always_inline bool was_accepted(struct sock *sk, const struct stream *s)
{
	struct unix_address *own;

	if (s->family == AF_UNIX) {
		own = BPF_CORE_READ((struct unix_sock *)sk, addr);
		return own && (BPF_CORE_READ(own, refcnt.refs.counter) > 1 || !peer_address(sk));
	}
	return BPF_CORE_READ(sk, sk_max_ack_backlog) || (s->own_port < s->other_port && s->own_port < 32768);
}

static __always_inline bool is_loopback(const __u32 *address)
{
	if (address[0] || address[1])
		return false;
	if (address[2])
		return address[2] == __builtin_bswap32(0xffff) && *(__u8 *)&address[3] == 127;
	return address[3] == __builtin_bswap32(1);
}

/* Whether an agent may wait for a client. Otherwise any client could make agents wait, by
 * answering as it likes. */
static __always_inline bool may_be_asked(struct sock *sk, const struct stream *s)
{
	struct task_struct *peer;

	if (s->family != AF_UNIX)
		return is_loopback(s->other_address);
	peer = peer_of(sk);
	return peer && privileged_on_node(peer);
}

static __always_inline void describe_stream(struct sock *sk, struct process *p, struct stream *s)
{
	struct task_struct *peer = peer_of(sk);
	struct conn *conn = conn_of((__u64)sk);

	if (conn) {
		s->dialled = conn->start;
		s->dialler = conn->thread;
	}
	s->self = p->self;
	s->root = p->root;
	s->ino = inode_of(sk);
	s->family = family_of(sk);
	s->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	if (peer)
		key_of(peer, &s->other);
	if (s->family == AF_UNIX) {
		struct sock *other = BPF_CORE_READ((struct unix_sock *)sk, peer);

		s->other_ino = other ? inode_of(other) : 0;
		return;
	}
	addresses_of(sk, s->own_address, s->other_address);
	s->own_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	s->other_port = swap(BPF_CORE_READ(sk, __sk_common.skc_dport));
}

/* False if there is no room. */
static __always_inline bool add_stream(__u64 sk, struct process *p, const struct stream *s)
{
	struct account *a = bpf_map_lookup_elem(&accounts, &p->root);
	long failed;

	if (!a || a->streams < STREAMS / 4) {
		failed = bpf_map_update_elem(&streams, &sk, s, BPF_NOEXIST);
		if (!failed && a)
			__sync_fetch_and_add(&a->streams, 1);
		/* of a closed socket */
		if (!failed || !bpf_map_update_elem(&streams, &sk, s, BPF_EXIST))
			return true;
	}
	lose(LOST_STREAMS, &p->root);
	return false;
}

static __always_inline void remove_stream(__u64 sk, const struct stream *s)
{
	struct task_key root = s->root;
	struct account *a;

	if (bpf_map_delete_elem(&streams, &sk))
		return;
	a = bpf_map_lookup_elem(&accounts, &root);
	if (a)
		__sync_fetch_and_add(&a->streams, -1);
}

/* The entry of a stream, without what happened before its process was followed. */
static __always_inline struct stream *stream_of(struct sock *sk, struct process *p)
{
	__u64 key = (__u64)sk;
	struct stream *s = bpf_map_lookup_elem(&streams, &key);

	if (!s || s->ino != inode_of(sk))
		return 0;
	if (s->wrote < p->since)
		s->wrote = 0;
	if (s->last < p->since)
		s->last = 0;
	if (s->read < p->since)
		s->read = 0;
	return s;
}

/* The address of the other end, as for connect. */
static __always_inline void append_peer_address(struct call_event *e, struct sock *sk, const struct stream *s)
{
	if (s->family == AF_UNIX) {
		struct unix_address *a = peer_address(sk);
		__u64 n = BPF_CORE_READ(a, len) & 127; /* sizeof(struct sockaddr_un) is 110 */

		HIDE(n);
		if (n > ADDRESS_MAX)
			n = ADDRESS_MAX;
		if (a &&
		    !bpf_probe_read_kernel(e->data, n, (void *)a + bpf_core_field_offset(struct unix_address, name)))
			e->len = n;
		return;
	}
	/* struct sockaddr_in6, or IPv4 as mapped into IPv6. */
	*(__u16 *)e->data = AF_INET6;
	*(__u16 *)&e->data[2] = swap(s->other_port);
	*(__u32 *)&e->data[4] = 0;
	__builtin_memcpy(&e->data[8], s->other_address, 16);
	*(__u32 *)&e->data[24] = 0;
	e->len = 28;
}

/* Reports an exchange, or a read without a request. ret is the result of the read; closed: the
 * process closed the stream. */
static __noinline int tell_exchange(struct sock *sk, struct process *p, struct stream *s, __s64 ret, bool closed)
{
	struct call_event *e;
	struct task_struct *peer;

	if (!p || !s)
		return 0;
	e = record(current_task(), p, CLASS_EXCHANGE, 0, ret);
	if (!e)
		return 0;
	e->start = s->wrote ? s->wrote : s->read;
	e->args[0] = !s->wrote;
	e->args[1] = closed;
	e->args[2] = s->last;
	e->protocol = s->family;
	e->object = s->dialled ? s->dialled : s->ino;
	e->port = s->dialler;
	peer = peer_of(sk);
	if (peer) {
		key_of(peer, &e->other);
		bpf_probe_read_kernel(e->comm, sizeof(e->comm),
				      (void *)peer + bpf_core_field_offset(struct task_struct, comm));
	}
	append_peer_address(e, sk, s);
	send_record(e, p, false);
	return 0;
}

/* A called server is asked on that connection, and does not ask. */
static __always_inline int serve_socket(struct sock *sk)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct process *p = bpf_map_lookup_elem(&processes, &tgid);
	struct stream s = {.serves = 1};

	if (!p || !p->agent || !sk)
		return 0;
	describe_stream(sk, p, &s);
	add_stream((__u64)sk, p, &s);
	return 0;
}

#ifndef FUNCTIONS
static __noinline int serve_stream(struct task_struct *task, __s64 fd)
{
	return serve_socket(sock_of(task, fd));
}
#endif

static __always_inline bool writes(__u8 class)
{
	return class == CLASS_WRITE || class == CLASS_WRITEV || class == CLASS_SENDTO || class == CLASS_SENDMSG;
}

static __always_inline bool peeks(const struct call *c)
{
	return (c->class == CLASS_RECVFROM && c->args[3] & MSG_PEEK) || (c->class == CLASS_RECVMSG && c->args[2] & MSG_PEEK);
}

/* Whether the stream will never deliver again. */
static __always_inline bool broken(__s64 ret)
{
	return ret == -EPIPE || ret == -ECONNRESET || ret == -ECONNABORTED || ret == -ETIMEDOUT;
}

enum meeting {
	NOT_MET = 0, /* no room */
	MET,
	MET_IN_THE_MIDDLE, /* what was read is reported, whatever follows */
};

/* The first use of a stream. An agent is asked on a stream that it accepted, unless it writes
 * first, to a peer that it may ask. A more distant process was followed later: it is asked on
 * accepted streams, but its first read may be an awaited answer. */
static __noinline int meet_stream(struct sock *sk, struct process *p, struct call *c)
{
	struct stream s = {};
	enum role role;

	if (!p || !c)
		return 0;
	describe_stream(sk, p, &s);
	role = role_of(s.ino);
	s.serves = role ? role == ROLE_SERVES : was_accepted(sk, &s) && (p->agent > 1 || !writes(c->class) || !may_be_asked(sk, &s));
	if (!add_stream((__u64)sk, p, &s))
		return 0;
	if (s.serves && !role && p->agent > 1 && !writes(c->class))
		return MET_IN_THE_MIDDLE;
	return MET;
}

/* An agent answers: reports the span that its thread publishes, once. */
static __noinline int tell_span(struct process *p, struct sock *sk, struct stream *s)
{
	struct task_struct *task = current_task();
	__s64 *offset = variable_of(task);
	struct thread_context *context;
	struct call_event *e;
	struct conn *conn;
	__u32 span;

	conn = p && sk && s && offset ? conn_to(sk) : 0;
	if (!conn)
		return 0;
	e = record(task, &conn->p, CLASS_ACCEPT, 0, 0);
	if (!e)
		return 0;
	context = (void *)e->data; /* older kernels have no room for it on the stack */
	if (!published(task, offset, context))
		return 0;
	__builtin_memcpy(&span, context->span, sizeof(span));
	if (context->valid != 1)
		span = -1;
	if (s->span == span)
		return 0;
	s->span = span;
	about_conn(e, conn);
	e->h.flags = FLAG_CONTEXT;
	e->other = p->self;
	bpf_probe_read_kernel(e->comm, sizeof(e->comm),
			      (void *)BPF_CORE_READ(task, group_leader) + bpf_core_field_offset(struct task_struct, comm));
	e->len = sizeof(*context);
	send_record(e, &conn->p, false);
	return 0;
}

/* An agent's read or write of a stream. */
static __noinline int exit_stream(struct task_struct *task, struct process *p, struct call *c, __s64 ret)
{
	__u64 now = bpf_ktime_get_ns(), key, since;
	struct stream *s;
	struct sock *sk;

	if (!p || !c || (ret < 0 && !broken(ret)) || peeks(c))
		return 0;
	sk = sock_of(task, c->args[0]);
	if (!sk || !calls_somebody(sk))
		return 0;
	key = (__u64)sk;
	s = stream_of(sk, p);
	if (!s) {
		int met = ret > 0 ? meet_stream(sk, p, c) : NOT_MET;

		if (met == NOT_MET)
			return 0;
		s = bpf_map_lookup_elem(&streams, &key);
		if (s && met == MET_IN_THE_MIDDLE)
			tell_exchange(sk, p, s, ret, false);
	}
	if (s && s->serves && ret > 0 && writes(c->class))
		tell_span(p, sk, s);
	if (!s || (s->serves && role_of(s->ino) != ROLE_ASKS))
		return 0;
	if (writes(c->class) && ret > 0) {
		s->last = c->start;
		if (!s->wrote) {
			s->self = p->self;
			s->thread = bpf_get_current_pid_tgid();
			s->wrote = c->start;
		}
		return 0;
	}
	/* Neither an end that no process waits for matters, nor a peer that continues to send. */
	since = s->wrote ? s->wrote : ret > 0 ? s->read : now;
	if (now - since >= LASTED && (s->wrote || ret > 0))
		tell_exchange(sk, p, s, ret, false);
	s->wrote = 0;
	s->read = bpf_ktime_get_ns(); /* not before the end of the reported one */
	return 0;
}

/* The waiting process closes the stream. */
static __noinline int close_stream(struct sock *sk, struct process *p)
{
	struct stream *s;

	if (!sk || !p)
		return 0;
	s = stream_of(sk, p);
	if (!s)
		return 0;
	if (s->wrote && bpf_ktime_get_ns() - s->wrote >= LASTED)
		tell_exchange(sk, p, s, 0, true);
	remove_stream((__u64)sk, s);
	return 0;
}
