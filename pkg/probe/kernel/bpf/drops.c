// SPDX-License-Identifier: (GPL-2.0-only OR Apache-2.0)
/* Who drops a pod's packets while its first connection waits. */
#include "kernel_inside.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";
volatile const __u32 node_net = 0; /* inode number */
volatile const __u8 has_reason = 0;

enum { AF_INET6 = 10, IPPROTO_TCP = 6, IPPROTO_UDP = 17, DNS = 53 << 8 /* big endian */, TCP_SYN_SENT = 2, MOST = 64 /* of a pod */ };

struct sk_buff___dropped {
	unsigned char *head, *data;
	__u16 network_header;
	struct net_device *dev;
	struct sock *sk;
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
	__u32 count;
	struct flow other; /* of the first */
};

#define TABLE(name, entries, of, is) struct { \
	__uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, entries); __type(key, of); __type(value, is); } name SEC(".maps")

TABLE(pods, 1024, __u64, struct pod);
TABLE(flows, 4096, struct flow, __u64); /* pods' ends; without the port of UDP */
TABLE(drops, 2048, struct drop, struct seen);

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
	first.other = e[!d.back];
	if (p->kinds < MOST && !bpf_map_update_elem(&drops, &d, &first, BPF_NOEXIST))
		__sync_fetch_and_add(&p->kinds, 1);
	s = bpf_map_lookup_elem(&drops, &d);
	if (s)
		__sync_fetch_and_add(&s->count, 1);
	return 0;
}
