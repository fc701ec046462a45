// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Who drops a pod's packets while its first connection waits. */
#include "kernel_inside.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";
volatile const __u32 node_net = 0; /* inode number */
volatile const __u8 has_reason = 0;
volatile __u64 since = 0; /* attached, monotonic ns */
/* Reasons differ by kernel; -1 is unknown. */
volatile const __u32 by_netfilter = -1, by_xdp = -1, unspecified = 0, by_ingress = -1, by_egress = -1;
/* Offsets in modules' types; 0 is unknown. */
volatile __u32 chain_table = 0, chain_name = 0, chain_rules = 0, table_name = 0, xt_name = 0, base_chain = 0, base_policy = 0;

enum { AF_INET6 = 10, IPPROTO_TCP = 6, IPPROTO_UDP = 17, DNS = 53 << 8 /* big endian */, TCP_SYN_SENT = 2, NF_ACCEPT = 1,
	IPPROTO_ICMPV6 = 58, SOLICITATION = 135, ADVERTISEMENT = 136,
	PODS = 1024, MOST = 64, KINDS = 16, NEIGHBORS = 256, RULED = 128, HOOKS = 5, RULES = 8, FRAMES = 12, BPF_F_NO_PREALLOC = 1 };

struct sk_buff___dropped {
	unsigned char *head, *data;
	__u16 network_header;
	struct net_device *dev;
	struct sock *sk;
	unsigned long _skb_refdst;
	int skb_iif;
} __attribute__((preserve_access_index));
struct rtable {
	__u8 rt_gw_family;
	__u32 rt_gw4;
	struct in6_addr rt_gw6;
} __attribute__((preserve_access_index));
struct rt6_info {
	struct in6_addr rt6i_gateway;
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
struct netdev_adjacent {
	struct net_device___programs *dev;
	struct list_head list;
} __attribute__((preserve_access_index));
struct rtnl_link_ops {
	const char *kind;
} __attribute__((preserve_access_index));
struct net_device___programs {
	struct bpf_xdp_entity xdp_state[3]; /* 5.9 */
	struct bpf_mprog_entry *tcx_ingress, *tcx_egress; /* 6.6 */
	struct mini_Qdisc *miniq_ingress, *miniq_egress;
	const struct rtnl_link_ops *rtnl_link_ops;
	struct {
		struct list_head lower;
	} adj_list;
	char priv[]; /* 6.10 */
} __attribute__((preserve_access_index));

struct pod {
	__u64 waits; /* last SYN again, monotonic ns */
	__u32 flows, kinds;
};
struct flow {
	__u32 address[4]; /* IPv4 as mapped into IPv6 */
	__be16 port;
	__u16 protocol;
};
struct ends {
	struct flow e[2];
};
struct drop {
	__u64 pod, place;
	__u32 reason;
	__u16 back, inside; /* to the pod; in its network namespace */
	char device[16];
	__u32 neighbor[4]; /* that ARP or NDP asks for */
};
struct seen {
	__u32 count, programs, program; /* attached there; the first's id */
	struct flow other; /* of the first */
	__u64 code; /* of the first program */
	__u64 began, last, watched, stack[FRAMES];
	__u32 next[4]; /* hop */
	__u64 guarded;
};
static const struct seen unseen = {};
struct rule {
	void *function, *of;
	__u64 idle; /* a base chain without rules that accepts */
	char legacy[32], chain[64], table[64];
};
struct ruled {
	__u64 pod /* 0: the node */, six;
};
/* What netfilter calls, by hook. */
struct rules {
	__u64 changed;
	__u32 counts[HOOKS + 1];
	struct rule all[HOOKS][RULES];
};
static const struct rules unruled = {};

/* Not preallocated: a pod that floods takes no room from others. */
#define TABLE(name, entries, of, is) struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(map_flags, BPF_F_NO_PREALLOC); \
	__uint(max_entries, entries); __type(key, of); __type(value, is); } name SEC(".maps")

TABLE(pods, PODS + 1, __u64, struct pod);
TABLE(flows, PODS *(MOST + 4), struct flow, __u64); /* pods' ends; without the port of UDP */
TABLE(drops, PODS *KINDS + NEIGHBORS, struct drop, struct seen);

TABLE(rules, RULED, struct ruled, struct rules);

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

/* The verifier examines a global function once, not for each state of its callers. Addresses are numbers to it. */

/* Both ends; false if neither TCP nor DNS. */
__noinline int ends_at(__u64 at, struct ends *ends)
{
	__u32 h[10] = {};
	struct flow *e;

	if (!ends)
		return 0;
	e = ends->e;
	bpf_probe_read_kernel(h, sizeof(h), (void *)at);
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
	bpf_probe_read_kernel(&e[0].port, 2, (void *)at);
	bpf_probe_read_kernel(&e[1].port, 2, (void *)at + 2);
	return e[0].protocol == IPPROTO_TCP || (e[0].protocol == IPPROTO_UDP && (e[0].port == DNS || e[1].port == DNS));
}

static __always_inline void mapped(__u32 a[4], const void *ipv4)
{
	a[0] = a[1] = 0;
	a[2] = 0xffff0000;
	__builtin_memcpy(&a[3], ipv4, 4);
}

/* The asker and the neighbor: 1 of a question, 2 of a reply. */
__noinline int asks(__u64 at, struct ends *ends)
{
	__u8 h[64] = {};
	struct flow *e;
	bool reply;

	if (!ends)
		return 0;
	e = ends->e;
	bpf_probe_read_kernel(h, sizeof(h), (void *)at);
	if (h[1] == 1 && h[2] == 8 && !h[3] && h[4] == 6 && h[5] == 4 && !h[6]) {
		reply = h[7] == 2;
		mapped(e[0].address, reply ? h + 24 : h + 14);
		mapped(e[1].address, reply ? h + 14 : h + 24);
		return e[0].address[3] && (reply || h[7] == 1) ? 1 + reply : 0;
	}
	if (h[0] >> 4 != 6 || h[6] != IPPROTO_ICMPV6 || (h[40] != SOLICITATION && h[40] != ADVERTISEMENT))
		return 0;
	reply = h[40] == ADVERTISEMENT;
	__builtin_memcpy(e[0].address, reply ? h + 24 : h + 8, 16);
	__builtin_memcpy(e[1].address, h + 48, 16);
	return e[0].address[3] ? 1 + reply : 0;
}

static __always_inline void note_next(__u32 next[4], struct sk_buff___dropped *skb, const __u32 to[4])
{
	void *dst = (void *)(BPF_CORE_READ(skb, _skb_refdst) & ~1ul);
	bool four = !to[0] && !to[1] && to[2] == 0xffff0000;
	__u32 gateway;

	if (dst && four && BPF_CORE_READ((struct rtable *)dst, rt_gw_family) != AF_INET6) {
		gateway = BPF_CORE_READ((struct rtable *)dst, rt_gw4);
		if (gateway)
			mapped(next, &gateway);
	} else if (dst) {
		bpf_probe_read_kernel(next, 16, dst + (four ? bpf_core_field_offset(struct rtable, rt_gw6) :
			bpf_core_field_offset(struct rt6_info, rt6i_gateway)));
	}
	if (!(next[0] | next[1] | next[2] | next[3]))
		__builtin_memcpy(next, to, 16);
}

__noinline int note_rules(__u64 at_net, __u64 pod, __u64 six)
{
	struct net___nf *net = (void *)at_net;
	struct ruled of = {pod, six};
	struct rules *all = bpf_map_lookup_elem(&rules, &of);

	if (!all) {
		bpf_map_update_elem(&rules, &of, (void *)&unruled, BPF_NOEXIST);
		all = bpf_map_lookup_elem(&rules, &of);
	}

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
	return 0;
}

static __always_inline void note_program(struct seen *s, struct bpf_prog___dropped *p)
{
	if (!p || s->programs++)
		return;
	s->program = BPF_CORE_READ(p, aux, id);
	s->code = (__u64)BPF_CORE_READ(p, bpf_func);
}

/* cls_bpf's layouts since Linux 4.0: the program, then the list. */
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

static __always_inline bool has_program(struct net_device___programs *dev)
{
	bool is = BPF_CORE_READ(dev, xdp_state[0].prog) || BPF_CORE_READ(dev, xdp_state[0].link) ||
		BPF_CORE_READ(dev, xdp_state[1].prog) || BPF_CORE_READ(dev, xdp_state[1].link) ||
		BPF_CORE_READ(dev, xdp_state[2].prog) || BPF_CORE_READ(dev, xdp_state[2].link);

	if (bpf_core_field_exists(dev->tcx_ingress))
		return is || BPF_CORE_READ(dev, tcx_ingress) || BPF_CORE_READ(dev, tcx_egress);
	return is || BPF_CORE_READ(dev, miniq_ingress) || BPF_CORE_READ(dev, miniq_egress);
}

/* Programs may take ARP without a drop. */
__noinline int guarded(__u64 at_dev)
{
	struct net_device___programs *dev = (void *)at_dev;

	for (int depth = 0; dev && depth < 4; depth++) {
		struct list_head *lower = (void *)dev + bpf_core_field_offset(dev->adj_list.lower), *first;
		__u32 kind = 0;

		if (has_program(dev))
			return 1;
		bpf_probe_read_kernel(&kind, 4, BPF_CORE_READ(dev, rtnl_link_ops, kind));
		first = BPF_CORE_READ(lower, next);
		if (kind == 0x6b74656e) /* netkit */
			return 1;
		if (kind == 0x68746576) /* veth */
			bpf_probe_read_kernel(&dev, sizeof(dev), (void *)dev + (bpf_core_field_exists(dev->priv) ?
				bpf_core_field_offset(dev->priv) : (bpf_core_type_size(struct net_device___programs) + 31) & ~31));
		else if (first != lower)
			dev = BPF_CORE_READ((struct netdev_adjacent *)((void *)first - bpf_core_field_offset(struct netdev_adjacent, list)), dev);
		else
			break;
	}
	return 0;
}

/* Others' requests came from a link. */
static __always_inline __u64 *asker(struct flow *e, bool came, bool reply, __u64 *node)
{
	struct flow end = *e;

	end.protocol = IPPROTO_UDP;
	end.port = 0;
	return bpf_map_lookup_elem(&flows, &end) ?: reply || !came ? node : 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(on_drop, struct sk_buff___dropped *skb, void *place)
{
	struct net_device *dev = BPF_CORE_READ(skb, dev);
	struct net *net = dev ? BPF_CORE_READ(dev, nd_net.net) : BPF_CORE_READ(skb, sk, __sk_common.skc_net.net);
	struct drop d = {.place = (__u64)place, .reason = has_reason ? ctx[2] : 0};
	__u64 header = (__u64)BPF_CORE_READ(skb, head) + BPF_CORE_READ(skb, network_header);
	__u64 data = (__u64)BPF_CORE_READ(skb, data) + 14, *pod = 0, node = 0;
	struct ends ends = {};
	struct flow *e = ends.e, end;
	struct seen *s;
	int asked = 0;
	struct pod *p;

	/* XDP for skbs leaves a stale network_header, and data at the Ethernet header. */
	if (ends_at(header, &ends) || ends_at(data, &ends)) {
		for (int i = 0; i < 2 && !pod; i++) {
			end = e[i];
			end.port = end.protocol == IPPROTO_UDP ? 0 : end.port;
			pod = bpf_map_lookup_elem(&flows, &end);
			d.back = i;
		}
	} else if ((asked = asks(header, &ends)) || (asked = asks(data, &ends))) {
		d.back = asked == 2;
		pod = asker(e, d.reason <= unspecified || d.reason == by_xdp || BPF_CORE_READ(skb, skb_iif), d.back, &node);
		__builtin_memcpy(d.neighbor, e[1].address, 16);
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
	if (!s && p->kinds < (d.pod ? KINDS : NEIGHBORS)) {
		if (!bpf_map_update_elem(&drops, &d, (void *)&unseen, BPF_NOEXIST))
			__sync_fetch_and_add(&p->kinds, 1);
		s = bpf_map_lookup_elem(&drops, &d);
		if (!s)
			return 0;
		s->other = e[d.back ? 0 : 1];
		bpf_get_stack(ctx, s->stack, sizeof(s->stack), 0);
		note_programs(s, (void *)dev, d.reason);
		if (!has_reason || d.reason == by_netfilter)
			note_rules((__u64)net, d.inside ? d.pod : 0, e[0].address[0] || e[0].address[2] != 0xffff0000);
		note_next(s->next, skb, e[1].address);
		s->guarded = guarded((__u64)dev);
		s->began = bpf_ktime_get_ns();
	}
	if (s) {
		__sync_fetch_and_add(&s->count, 1);
		s->last = bpf_ktime_get_ns();
		if (s->last - since > s->watched)
			s->watched = s->last - since;
	}
	return 0;
}
