/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Connections and waits of plugins from before system calls were traced: attaching takes up to some
 * 10 ms, and a plugin may need less to call its agent. */
#pragma once

/* Examined descriptors: a plugin has a handful. */
#define OPEN_MAX 64

/* Whether a process made this connection itself. For unix the kernel knows who called connect; a
 * TCP socket might be inherited, but runtimes pass none to plugins. */
static __noinline int connected_by(struct sock *sk, struct process *p)
{
	struct stream s = {};
	struct sock *peer;
	__u8 state;

	if (!p)
		return false;
	if (family_of(sk) == AF_UNIX) {
		peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
		return peer && peer_address(sk) && caller_of_other_end(peer) == p->self.tgid;
	}
	state = BPF_CORE_READ(sk, __sk_common.skc_state);
	describe_stream(sk, p, &s);
	return (state == TCP_ESTABLISHED || state == TCP_SYN_SENT) && !was_accepted(sk, &s);
}

/* The time of the connection is unknown; it is not after now. */
static __noinline int keep_connection(struct sock *sk, struct process *p)
{
	struct conn conn = {};

	if (!p)
		return false;
	conn.p = *p;
	conn.start = bpf_ktime_get_ns();
	conn.ino = inode_of(sk);
	conn.thread = p->self.tgid;
	return add_conn((__u64)sk, &conn);
}

static __noinline int tell_connection(struct task_struct *task, struct process *p, struct sock *sk, struct conn *conn)
{
	struct stream s = {};
	struct call_event *e;

	if (!p || !conn)
		return 0;
	e = record(task, p, CLASS_CONNECT, 0, 0);
	if (!e)
		return 0;
	describe_stream(sk, p, &s);
	e->start = conn->start;
	e->thread = conn->thread;
	about_conn(e, conn);
	e->protocol = s.family;
	if (s.family == AF_UNIX)
		e->other.tgid = caller_of_other_end(sk);
	append_peer_address(e, sk, &s);
	send_record(e, p, false);
	return 0;
}

/* An earlier accepted connection makes the process a server. */
static __noinline int serve_before(struct task_struct *server, struct sock *sk)
{
	__u32 tgid = BPF_CORE_READ(server, tgid);
	struct process *p = bpf_map_lookup_elem(&processes, &tgid);
	struct stream s = {.serves = 1};

	if (!p || !p->agent)
		return 0;
	describe_stream(sk, p, &s);
	add_stream((__u64)sk, p, &s);
	return 0;
}

/* Both ends of TCP have the same addresses; of unix each knows the other. */
static __noinline int await_server(struct sock *sk, struct conn *conn)
{
	struct half half = {.sk = (__u64)sk};
	struct pair pair = {};

	if (!conn)
		return 0;
	conn->before = 1;
	if (!is_tcp(sk))
		return family_of(sk) == AF_UNIX;
	half.ino = conn->ino;
	pair_of_client(sk, &pair);
	pair_within(sk, &pair);
	bpf_map_update_elem(&pairs, &pair, &half, BPF_ANY);
	return 1;
}

/* Returns whether to look for its server. */
static __always_inline int find_connection(struct task_struct *task, struct process *p, __u32 fd)
{
	struct sock *sk = sock_of(task, fd);
	struct conn *conn;

	if (!sk || !calls_somebody(sk) || conn_of((__u64)sk) || !connected_by(sk, p))
		return 0;
	if (!keep_connection(sk, p)) {
		lose(LOST_CONNS, &p->root);
		return 0;
	}
	connects(p);
	conn = conn_of((__u64)sk);
	tell_connection(task, p, sk, conn);
	return await_server(sk, conn);
}

/* Global, because the verifier examines such a function only once. */
__noinline int look_at(__u64 leader, __u32 tgid, __u32 fd)
{
	struct process *p;
	int found = 0;

	hold();
	p = bpf_map_lookup_elem(&processes, &tgid);
	if (p && !p->agent) /* agents' streams are met at their next use */
		found = find_connection((struct task_struct *)leader, p, fd);
	let_go();
	return found;
}

/* A wait that began earlier counts from now, and as one without a timeout. */
static __always_inline void waits_already(struct task_struct *task)
{
	struct call *c = waits(task) ? place_of(task) : 0;

	if (!c || c->since)
		return;
	begins_wait(task, c, bpf_ktime_get_ns());
	if (!waits(task)) /* it came back in between */
		c->since = 0;
}

/* Called for each task after the gate was opened. Writes a byte per process with a connection
 * whose server is unknown. */
SEC("iter/task")
int look_back(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 leader; /* a number: the verifier allows no pointer into a global function */
	__u8 found = 0;

	if (!task || !may_be_tracked(task->tgid))
		return 0;
	hold();
	waits_already(task);
	let_go();
	if (task->pid != task->tgid)
		return 0;
	leader = (__u64)BPF_CORE_READ(task, group_leader);
	for (int fd = 0; fd < OPEN_MAX; fd++)
		found |= look_at(leader, task->tgid, fd);
	if (found)
		bpf_seq_write(ctx->meta->seq, &found, sizeof(found));
	return 0;
}

/* Called for each open file of the node if a server is unknown. If a child inherited the socket,
 * the first process counts, usually the one that accepted it. */
SEC("iter/task_file")
int look_for_servers(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct sock *sk = task && file ? sock_in(file) : 0;
	struct conn *conn;

	if (!sk)
		return 0;
	hold();
	conn = conn_to(sk);
	if (conn && conn->before) {
		conn->before = 0;
		if (answered(task, conn))
			serve_before(task, sk);
	}
	let_go();
	return 0;
}
