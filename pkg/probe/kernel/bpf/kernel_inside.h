/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* Types that only tracing needs; see kernel.h. */
#pragma once
#include "kernel.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* The registers of a system call, by architecture. */
struct pt_regs___x86 {
	unsigned long di, si, dx, r10, r8;
	unsigned long orig_ax;
};

struct pt_regs___arm64 {
	__u64 regs[31];
	__u64 orig_x0; /* regs[0] is the result at the end */
	__s32 syscallno;
};

struct task_struct___stack {
	void *stack;
};

/* A task's state: since 5.14, and before. */
struct task_struct___14 {
	unsigned int __state;
};

struct task_struct___13 {
	volatile long state;
};

/* What a task must do before it leaves the kernel. */
struct task_struct___jobctl {
	unsigned long jobctl;
};

struct thread_info___x86 {
	__u32 status;
};

struct task_struct___x86 {
	struct thread_info___x86 thread_info;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct inode___ns {
	void *i_private; /* in nsfs: a struct ns_common */
};

struct ns_common___ops {
	const void *ops;
};

struct net___ops {
	struct ns_common___ops ns;
};

struct list_head {
	struct list_head *next;
};

struct file_lock_context {
	struct list_head flc_flock;
	struct list_head flc_posix;
};

/* Since 6.9; earlier these are in file_lock itself. */
struct file_lock_core {
	struct list_head flc_list;
	pid_t flc_pid;
};

struct file_lock {
	struct list_head fl_list;
	unsigned int fl_pid;
};

struct in6_addr {
	__u8 in6_u[16];
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	__u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct socket;

/* A message in the queue of a netlink socket. */
struct sk_buff {
	struct sk_buff *next, *prev;
	unsigned int len;
	unsigned char *data;
};

struct sk_buff_head {
	struct sk_buff *next, *prev;
	__u32 qlen;
};

struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	__u16 sk_protocol; /* a bit field before 5.6 */
	int sk_err;
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
	__u32 sk_max_ack_backlog; /* TCP: the backlog of listen; an accepted socket has its listener's */
};

typedef enum {
	SS_UNCONNECTED = 1,
	SS_CONNECTING = 2,
} socket_state;

struct socket {
	socket_state state;
	short type;
	struct file *file;
	struct sock *sk;
};

struct tcp_sock {
	__u32 write_seq;
	__u32 copied_seq;
};

struct netlink_sock {
	__u32 portid;
};

struct sockaddr_un {
	unsigned short sun_family;
};

typedef struct {
	atomic_t refs;
} refcount_t;

struct unix_address {
	refcount_t refcnt; /* sockets that have it */
	int len;
	struct sockaddr_un name[];
};

struct unix_sock {
	struct unix_address *addr; /* an accepted socket has its listener's */
	struct sock *peer;
};

typedef struct {
	long counter;
} atomic_long_t;

struct mutex {
	atomic_long_t owner;
};

struct net_device {
	char name[16];
	int ifindex;
	possible_net_t nd_net;
};

struct kiocb {
	struct file *ki_filp;
};

struct iov_iter {
	unsigned long count;
};

struct bpf_prog_aux {
	char name[16];
};

struct bpf_prog {
	struct bpf_prog_aux *aux;
};

enum bpf_link_type {
	BPF_LINK_TYPE_XDP = 6,
	BPF_LINK_TYPE_TCX = 11,
	BPF_LINK_TYPE_NETKIT = 13,
};

struct bpf_link {
	enum bpf_link_type type;
	struct bpf_prog *prog;
};

/* Every link to an interface has it behind the link. Since 6.6; for XDP since 5.9. */
struct tcx_link {
	struct bpf_link link;
	struct net_device *dev;
};

struct netkit_link {
	struct bpf_link link;
	struct net_device *dev;
};

struct bpf_xdp_link {
	struct bpf_link link;
	struct net_device *dev;
};

#pragma clang attribute pop

/* Memory of user space: its layout is fixed. */
struct iovec {
	__u64 base, len;
};

struct msghdr {
	__u64 name;
	__u32 namelen, pad;
	__u64 iov, iovlen;
};

struct nlmsghdr {
	__u32 len;
	__u16 type, flags;
	__u32 seq, pid;
};
