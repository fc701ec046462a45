// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Who drops a pod's packets while its first connection waits. */
#include "kernel_inside.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";
volatile const __u32 node_net = 0; /* inode number */
volatile const __u8 has_reason = 0;
/* Reasons differ by kernel; -1 is unknown. */
volatile const __u32 by_netfilter = -1, by_xdp = -1, unspecified = 0, by_ingress = -1, by_egress = -1;
/* Offsets in types of modules, which may be loaded later; 0 is unknown. */
volatile __u32 chain_table = 0, chain_name = 0, chain_rules = 0, table_name = 0, xt_name = 0, base_chain = 0, base_policy = 0;

enum { AF_INET6 = 10, IPPROTO_TCP = 6, IPPROTO_UDP = 17, DNS = 53 << 8 /* big endian */, TCP_SYN_SENT = 2, NF_ACCEPT = 1,
	PODS = 1024, MOST = 64, KINDS = 16 /* of a pod */, HOOKS = 5, RULES = 8, FRAMES = 12, BPF_F_NO_PREALLOC = 1 };

struct sk_buff___dropped {
	unsigned char *head, *data;
	__u16 network_header;
	struct net_device *dev;
	struct sock *sk;
} __attribute__((preserve_access_index));

struct nf_hook_entry {
	void *hook, *priv;
} __attribute__((preserve_access_index));
struct nf_hook_entries {
	__u16 num_hook_entries;
	struct nf_hook_entry hooks[];
} __attribute__((preserve_access_index));
struct net___nf {
	struct {
		struct nf_hook_entries *hooks_ipv4[HOOKS], *hooks_ipv6[HOOKS];
	} nf;
} __attribute__((preserve_access_index));
struct bpf_prog_aux___dropped {
	__u32 id;
} __attribute__((preserve_access_index));
struct bpf_prog___dropped {
	struct bpf_prog_aux___dropped *aux;
	void *bpf_func;
} __attribute__((preserve_access_index));
struct bpf_link___dropped {
	struct bpf_prog___dropped *prog;
} __attribute__((preserve_access_index));
struct bpf_xdp_link___dropped {
	struct bpf_link___dropped link;
} __attribute__((preserve_access_index));
struct bpf_xdp_entity {
	struct bpf_prog___dropped *prog;
	struct bpf_xdp_link___dropped *link;
} __attribute__((preserve_access_index));
struct tcf_proto_ops {
	char kind[16];
} __attribute__((preserve_access_index));
struct tcf_proto {
	struct tcf_proto *next;
	void *root;
	struct tcf_proto_ops *ops;
} __attribute__((preserve_access_index));
struct mini_Qdisc {
	struct tcf_proto *filter_list;
} __attribute__((preserve_access_index));
struct bpf_mprog_fp {
	struct bpf_prog___dropped *prog;
} __attribute__((preserve_access_index));
struct bpf_mprog_bundle {
	__u32 count;
} __attribute__((preserve_access_index));
struct bpf_mprog_entry {
	struct bpf_mprog_fp fp_items[64];
	struct bpf_mprog_bundle *parent;
} __attribute__((preserve_access_index));
struct tcx_entry {
	struct mini_Qdisc *miniq;
	struct bpf_mprog_bundle bundle;
} __attribute__((preserve_access_index));
struct net_device___programs {
	struct bpf_xdp_entity xdp_state[3]; /* 5.9 */
	struct bpf_mprog_entry *tcx_ingress, *tcx_egress; /* 6.6 */
} __attribute__((preserve_access_index));

struct pod {
	__u64 waits; /* when it last sent a SYN again, monotonic ns */
	__u32 flows, kinds;
};
struct flow {
	__u32 address[4]; /* IPv4 as mapped into IPv6 */
	__be16 port;
	__u16 protocol;
};
struct drop {
	__u64 pod, place;
	__u32 reason;
	__u16 back, inside; /* to the pod; in its network namespace */
	char device[16];
};
struct seen {
	__u32 count, programs, program; /* attached there; the first's id */
	struct flow other; /* of the first */
	__u64 code; /* of the first program */
	__u64 began, stack[FRAMES];
};
struct rule {
	void *function, *of;
	__u64 idle; /* a base chain without rules that accepts */
	char legacy[32], chain[64], table[64];
};
/* What netfilter calls on the node, by hook. */
struct rules {
	__u64 changed;
	__u32 counts[HOOKS + 1];
	struct rule all[HOOKS][RULES];
};

/* Not preallocated: a pod that floods takes no room from others. */
#define TABLE(name, entries, of, is) struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(map_flags, BPF_F_NO_PREALLOC); \
	__uint(max_entries, entries); __type(key, of); __type(value, is); } name SEC(".maps")

TABLE(pods, PODS, __u64, struct pod);
TABLE(flows, PODS *(MOST + 4), struct flow, __u64); /* pods' ends; without the port of UDP */
TABLE(drops, PODS *KINDS, struct drop, struct seen);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct rules);
} rules SEC(".maps");

static __always_inline __u64 cookie_of(struct net *net)
{
	return bpf_core_field_exists(net->net_cookie) ? BPF_CORE_READ(net, net_cookie) : BPF_CORE_READ(net, ns.inum);
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_again, struct sock *sk)
{
	__u64 cookie = cookie_of(sk->__sk_common.skc_net.net);
	struct pod *p = bpf_map_lookup_elem(&pods, &cookie);
	struct flow f = {.address = {0, 0, 0xffff0000, sk->__sk_common.skc_rcv_saddr}, .protocol = IPPROTO_TCP};

	if (!p || sk->__sk_common.skc_state != TCP_SYN_SENT)
		return 0;
	p->waits = bpf_ktime_get_ns();
	if (sk->__sk_common.skc_family == AF_INET6)
		bpf_core_read(f.address, sizeof(f.address), &sk->__sk_common.skc_v6_rcv_saddr);
	f.port = __builtin_bswap16(sk->__sk_common.skc_num);
	if (p->flows < MOST && !bpf_map_update_elem(&flows, &f, &cookie, BPF_NOEXIST))
		__sync_fetch_and_add(&p->flows, 1);
	return 0;
}

/* Both ends of a packet; false if it is neither TCP nor a DNS query or its answer. */
static __always_inline bool ends_at(void *at, struct flow e[2])
{
	__u32 h[10] = {};

	bpf_probe_read_kernel(h, sizeof(h), at);
	if ((h[0] >> 4 & 15) == 4) {
		e[0].address[2] = e[1].address[2] = 0xffff0000;
		__builtin_memcpy(&e[0].address[3], &h[3], 4);
		__builtin_memcpy(&e[1].address[3], &h[4], 4);
		e[0].protocol = h[2] >> 8 & 255;
		at += (h[0] & 15) * 4;
	} else if ((h[0] >> 4 & 15) == 6) {
		__builtin_memcpy(e[0].address, &h[2], 16);
		__builtin_memcpy(e[1].address, &h[6], 16);
		e[0].protocol = h[1] >> 16 & 255;
		at += sizeof(h);
	}
	e[1].protocol = e[0].protocol;
	bpf_probe_read_kernel(&e[0].port, 2, at);
	bpf_probe_read_kernel(&e[1].port, 2, at + 2);
	return e[0].protocol == IPPROTO_TCP || (e[0].protocol == IPPROTO_UDP && (e[0].port == DNS || e[1].port == DNS));
}

static __always_inline void note_rules(struct net___nf *net, __u32 six)
{
	struct rules *all = bpf_map_lookup_elem(&rules, &six);

	for (int h = 0; all && h < HOOKS; h++) {
		struct nf_hook_entries *e = six ? BPF_CORE_READ(net, nf.hooks_ipv6[h]) : BPF_CORE_READ(net, nf.hooks_ipv4[h]);
		__u32 n = e ? BPF_CORE_READ(e, num_hook_entries) : 0;

		if (n != all->counts[h])
			all->changed = bpf_ktime_get_ns();
		all->counts[h] = n;
		for (int i = 0; i < RULES && i < n; i++) {
			struct rule *r = &all->all[h][i];
			void *function = BPF_CORE_READ(e, hooks[i].hook), *of = BPF_CORE_READ(e, hooks[i].priv), *at = 0;
			__u8 policy = 0;
			__u64 idle;

			bpf_probe_read_kernel(&at, sizeof(at), of + chain_rules);
			bpf_probe_read_kernel(&policy, sizeof(policy), of - base_chain + base_policy);
			idle = base_chain && chain_rules && at == of + chain_rules && policy == NF_ACCEPT;
			if (function != r->function || of != r->of || idle != r->idle)
				all->changed = bpf_ktime_get_ns();
			r->function = function;
			r->of = of;
			r->idle = idle;
			r->legacy[0] = r->chain[0] = 0;
			if (xt_name)
				bpf_probe_read_kernel_str(r->legacy, sizeof(r->legacy), of + xt_name);
			if (!chain_name || !chain_table || !table_name)
				continue;
			bpf_probe_read_kernel(&at, sizeof(at), of + chain_name);
			bpf_probe_read_kernel_str(r->chain, sizeof(r->chain), at);
			bpf_probe_read_kernel(&at, sizeof(at), of + chain_table);
			bpf_probe_read_kernel(&at, sizeof(at), at + table_name);
			bpf_probe_read_kernel_str(r->table, sizeof(r->table), at);
		}
	}
}

static __always_inline void note_program(struct seen *s, struct bpf_prog___dropped *p)
{
	if (!p || s->programs++)
		return;
	s->program = BPF_CORE_READ(p, aux, id);
	s->code = (__u64)BPF_CORE_READ(p, bpf_func);
}

/* The layouts of cls_bpf, a module, are those since Linux 4.0: the program, then the list of these. */
static __always_inline void note_filters(struct seen *s, struct tcx_entry *t)
{
	struct tcf_proto *filter = BPF_CORE_READ(t, miniq, filter_list);
	void *head = BPF_CORE_READ(filter, root), *one = 0, *next = 0;
	struct bpf_prog___dropped *p = 0;
	char kind[16] = {};

	if (!filter)
		return;
	BPF_CORE_READ_INTO(&kind, filter, ops, kind);
	bpf_probe_read_kernel(&one, sizeof(one), head);
	bpf_probe_read_kernel(&next, sizeof(next), one);
	bpf_probe_read_kernel(&p, sizeof(p), one - sizeof(p));
	if (kind[0] != 'b' || kind[1] != 'p' || kind[2] != 'f' || kind[3])
		p = 0;
	note_program(s, p);
	if (!p || next != head || BPF_CORE_READ(filter, next))
		s->programs++;
}

static __always_inline void note_programs(struct seen *s, struct net_device___programs *dev, __u32 reason)
{
	struct bpf_mprog_entry *e = 0;

	if ((reason == by_xdp || reason <= unspecified) && bpf_core_field_exists(dev->xdp_state)) {
		for (int i = 0; i < 2; i++) { /* for skbs, in the driver */
			struct bpf_xdp_link___dropped *l = BPF_CORE_READ(dev, xdp_state[i].link);

			note_program(s, l ? BPF_CORE_READ(l, link.prog) : BPF_CORE_READ(dev, xdp_state[i].prog));
		}
	}
	if (!bpf_core_field_exists(dev->tcx_ingress))
		return;
	if (reason == by_ingress)
		e = BPF_CORE_READ(dev, tcx_ingress);
	if (reason == by_egress)
		e = BPF_CORE_READ(dev, tcx_egress);
	if (!e)
		return;
	note_program(s, BPF_CORE_READ(e, fp_items[0].prog));
	note_program(s, BPF_CORE_READ(e, fp_items[1].prog));
	note_filters(s, (void *)BPF_CORE_READ(e, parent) - bpf_core_field_offset(struct tcx_entry, bundle));
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(on_drop, struct sk_buff___dropped *skb, void *place)
{
	struct net_device *dev = BPF_CORE_READ(skb, dev);
	struct net *net = dev ? BPF_CORE_READ(dev, nd_net.net) : BPF_CORE_READ(skb, sk, __sk_common.skc_net.net);
	struct flow e[2] = {}, end;
	struct drop d = {.place = (__u64)place, .reason = has_reason ? ctx[2] : 0};
	struct seen first = {}, *s;
	__u64 *pod = 0;
	struct pod *p;

	/* XDP for skbs leaves a stale network_header, and data at the Ethernet header. */
	if (!ends_at(BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header), e) && !ends_at(BPF_CORE_READ(skb, data) + 14, e))
		return 0;
	for (int i = 0; i < 2 && !pod; i++) {
		end = e[i];
		end.port = end.protocol == IPPROTO_UDP ? 0 : end.port;
		pod = bpf_map_lookup_elem(&flows, &end);
		d.back = i;
	}
	p = pod ? bpf_map_lookup_elem(&pods, pod) : 0;
	if (!p)
		return 0;
	d.pod = *pod;
	d.inside = cookie_of(net) == d.pod;
	/* In another namespace any tenant may have such packets. */
	if (!d.inside && BPF_CORE_READ(net, ns.inum) != node_net)
		return 0;
	if (dev)
		bpf_core_read(d.device, sizeof(d.device), &dev->name);
	s = bpf_map_lookup_elem(&drops, &d);
	if (!s && p->kinds < KINDS) {
		first.other = e[!d.back];
		bpf_get_stack(ctx, first.stack, sizeof(first.stack), 0);
		note_programs(&first, (void *)dev, d.reason);
		if (!d.inside && (!has_reason || d.reason == by_netfilter))
			note_rules((void *)net, e[0].address[0] || e[0].address[2] != 0xffff0000);
		first.began = bpf_ktime_get_ns();
		if (!bpf_map_update_elem(&drops, &d, &first, BPF_NOEXIST))
			__sync_fetch_and_add(&p->kinds, 1);
		s = bpf_map_lookup_elem(&drops, &d);
	}
	if (s)
		__sync_fetch_and_add(&s->count, 1);
	return 0;
}
