/* SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0) */
/* The used parts of the kernel's types. CO-RE takes the offsets from the running kernel's BTF,
 * so only names and types matter. */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef int pid_t;
typedef _Bool bool;
#define true 1
#define false 0

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};
enum {
	BPF_F_USER_STACK = 1 << 8,
	BPF_F_MMAPABLE = 1 << 10,
};
enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_CONS_POS = 2,
	BPF_RB_PROD_POS = 3,
};
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	int counter;
} atomic_t;

struct ns_common {
	unsigned int inum;
};

struct user_namespace {
	int level;
};

typedef struct {
	unsigned int val;
} kuid_t;

/* u32 cap[2] until 6.3, u64 val since: the same bits without a common name, so only the whole
 * can be read. */
typedef struct {
	__u64 whole;
} kernel_cap_t;

struct cred {
	kuid_t uid; /* the real one */
	kernel_cap_t cap_effective;
	kernel_cap_t cap_ambient;
	struct user_namespace *user_ns;
};

struct mnt_namespace {
	struct ns_common ns;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct hlist_node {
	struct hlist_node *next;
	struct hlist_node **pprev;
};

struct hlist_head {
	struct hlist_node *first;
};

struct pid {
	unsigned int level;
	struct hlist_head tasks[4]; /* by enum pid_type */
	struct upid numbers[1];
};

struct net {
	struct ns_common ns;
	__u64 net_cookie; /* 5.12 */
};

struct nsproxy {
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
};

struct file_lock_context;

struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
	long long i_size;
	struct super_block *i_sb;
	struct file_lock_context *i_flctx;
};

struct vfsmount;

struct qstr {
	__u64 hash_len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct fs_struct {
	struct path pwd;
};

struct file {
	struct inode *f_inode;
	void *private_data;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
	struct fdtable fdtab; /* the initial one … */
	struct file *fd_array[64]; /* … and its files, NR_OPEN_DEFAULT */
};

struct mm_struct {
	struct file *exe_file;
	unsigned long start_code, end_code;
	unsigned long arg_start, arg_end, env_start, env_end;
};

struct sched_entity {
	__u64 exec_start;
	__u64 sum_exec_runtime;
};

struct sched_info {
	unsigned long long run_delay;
};

struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
	struct pid *pids[4]; /* by enum pid_type */
};

struct task_struct {
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned int flags;
	struct mm_struct *mm;
	int exit_code;
	pid_t pid;
	pid_t tgid;
	char comm[16];
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct hlist_node pid_links[4];
	__u64 start_time;
	__u64 start_boottime; /* 5.5 */
	const struct cred *cred;
	struct fs_struct *fs;
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	__u64 self_exec_id;
};

/* A thread pointer, by architecture. */
struct thread_struct___fs {
	unsigned long fsbase;
};

struct task_struct___fs {
	struct thread_struct___fs thread;
};

struct thread_struct___tp {
	struct {
		unsigned long tp_value;
	} uw;
};

struct task_struct___tp {
	struct thread_struct___tp thread;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

/* Context of a program that the kernel calls for each task; 5.8. */
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* … for each file that a task has open; 5.8. */
struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
};

struct linux_binprm {
	struct file *file;
	const char *filename; /* the requested file: a script's own */
	const char *interp;   /* the running file, other than filename for a script */
	unsigned long exec;   /* address of filename in the program (AT_EXECFN of getauxval(3)) */
};

#pragma clang attribute pop
