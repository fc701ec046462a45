package drops

import (
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

// layouts: modules may be loaded later.
func (o *objects) layouts(kernel *btf.Spec) {
	cache := btf.NewCache()
	for _, m := range []struct {
		at                   *ebpf.Variable
		module, kind, member string
	}{
		{o.ChainTable, "nf_tables", "nft_chain", "table"},
		{o.ChainName, "nf_tables", "nft_chain", "name"},
		{o.ChainRules, "nf_tables", "nft_chain", "rules"},
		{o.BaseChain, "nf_tables", "nft_base_chain", "chain"},
		{o.BasePolicy, "nf_tables", "nft_base_chain", "policy"},
		{o.TableName, "nf_tables", "nft_table", "name"},
		{o.LegacyName, "x_tables", "xt_table", "name"},
	} {
		var known uint32
		if m.at.Get(&known) != nil || known != 0 {
			continue
		}
		types := kernel
		if _, err := os.Stat("/sys/kernel/btf/" + m.module); err == nil {
			if types, err = cache.Module(m.module); err != nil {
				continue
			}
		}
		var s *btf.Struct
		if types == nil || types.TypeByName(m.kind, &s) != nil {
			continue
		}
		if i := slices.IndexFunc(s.Members, func(of btf.Member) bool { return of.Name == m.member }); i >= 0 {
			_ = m.at.Set(s.Members[i].Offset.Bytes())
		}
	}
}

// callers of netfilter.
var callers = [hooks]struct {
	hook      string
	functions []string
}{
	{"prerouting", []string{"ip_rcv", "ip_sublist_rcv", "ip_list_rcv", "ipv6_", "ip6_sublist_rcv", "br_nf_pre"}},
	{"input", []string{"ip_local_deliver", "ip6_input"}},
	{"forward", []string{"ip_forward", "ip6_forward", "br_nf_forward"}},
	{"output", []string{"__ip_local_out", "__ip6_local_out", "ip6_xmit"}},
	{"postrouting", []string{"ip_output", "ip_mc_output", "ip6_output", "br_nf_post"}},
}

const (
	slow = "nf_hook_slow"
	nft  = "nft_do_chain" // frees since Linux 6.7
)

func starts(name string, with ...string) bool {
	return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(name, w) })
}

func (w *Watch) filtered(d *event.Drop, s *seen, pod uint64) {
	if !starts(d.Place, nft, slow) {
		return
	}
	at := slices.IndexFunc(s.Stack[:], func(a uint64) bool { return starts(w.name(a), slow) })
	if at < 1 {
		return
	}
	callee, hook := w.name(s.Stack[at-1]), w.hook(s.Stack[at:])
	if hook >= 0 {
		d.Hook = callers[hook].hook
	}
	var of ruled
	if d.InPod {
		of.Pod = pod
	}
	if s.Other.addr().Is6() {
		of.Six = 1
	}
	var r rules
	if hook < 0 || w.objects.Rules.Lookup(of, &r) != nil || r.Changed > s.Began ||
		r.Counts[hook] > uint32(len(r.All[hook])) {
		return
	}
	for _, one := range r.All[hook][:r.Counts[hook]] {
		function := w.name(one.Function)
		byChain := starts(d.Place, nft)
		switch {
		case byChain && (function != callee || one.Idle != 0),
			!byChain && (w.frees && starts(function, nft) || passes(function)):
			continue
		}
		chain := one.chain(function, hook, of.Six == 1)
		if chain.Name == "" {
			d.Chains = nil
			return
		}
		d.Chains = append(d.Chains, chain)
	}
}

func (w *Watch) hook(above []uint64) int {
	for len(above) > 1 && starts(w.name(above[0]), slow) { // lists
		above = above[1:]
	}
	found := -1
	for i, c := range callers {
		if starts(w.name(above[0]), c.functions...) {
			found = i
		}
	}
	return found
}

func passes(function string) bool {
	return strings.Contains(function, "defrag") || starts(function, "nf_nat", "selinux_", "apparmor_", "smack_")
}

func (r *rule) chain(function string, hook int, six bool) (c event.Chain) {
	if c.Family = "ip"; six {
		c.Family = "ip6"
	}
	clean := func(b []byte) string { return text.Clean(unix.ByteSliceToString(b), text.Bound) }
	switch {
	case starts(function, "nft_do_chain_"):
		if function == "nft_do_chain_inet" {
			c.Family = "inet"
		}
		c.Backend, c.Table, c.Name = "nftables", clean(r.Table[:]), clean(r.Chain[:])
	case starts(function, "ipt_do_table", "ip6t_do_table"):
		if c.Table = clean(r.Legacy[:]); c.Table != "" {
			c.Backend, c.Name = "iptables-legacy", legacy[hook]
		}
	case strings.Contains(function, "conntrack"), strings.HasSuffix(function, "confirm"):
		c.Backend, c.Name = "conntrack", callers[hook].hook
	}
	return c
}

var legacy = [hooks]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

func (w *Watch) program(code uint64) string {
	const tag = len("bpf_prog_0123456789abcdef_")
	name := w.name(code)
	return name[min(tag, len(name)):]
}

func nftFrees() bool {
	version, err := features.LinuxVersionCode()
	return err == nil && version >= 6<<16|7<<8
}
