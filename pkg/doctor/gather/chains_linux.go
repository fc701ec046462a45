package gather

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unsafe"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// Chains lists the node's chains of nf_tables and legacy iptables, which needs CAP_NET_ADMIN.
func Chains(context.Context) ([]fact.Chain, error) {
	found, err := nftChains()
	if err != nil {
		return nil, err
	}
	legacy, err := legacyChains()
	return append(found, legacy...), err
}

func nftChains() ([]fact.Chain, error) {
	conn, err := nftables.New()
	if err != nil {
		return nil, fmt.Errorf("cannot open nf_tables: %w", err)
	}
	all, err := conn.ListChains()
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EINVAL):
		return nil, nil // no nf_tables
	case err != nil:
		return nil, fmt.Errorf("cannot list the chains of nf_tables: %w", err)
	}
	found := make([]fact.Chain, 0, len(all))
	for _, c := range all {
		chain := fact.Chain{
			Backend: "nftables", Family: families[c.Table.Family], Table: fact.Clean(c.Table.Name),
			Name: fact.Clean(c.Name),
		}
		forwards := c.Hooknum != nil && *c.Hooknum == *nftables.ChainHookForward && routes(c.Table.Family)
		chain.Drops = forwards && c.Policy != nil && *c.Policy == nftables.ChainPolicyDrop
		if chain.Matters() || forwards {
			rules, err := conn.GetRules(c.Table, c)
			if errors.Is(err, unix.ENOENT) {
				continue // it is gone
			}
			if err != nil {
				return nil, fmt.Errorf("cannot list the rules of chain %s: %w", c.Name, err)
			}
			chain.Rules = len(rules)
			if i := slices.IndexFunc(rules, dropsAll); forwards && i >= 0 {
				chain.Drops, chain.Rules, chain.Handle = true, i, rules[i].Handle
			}
		}
		found = append(found, chain)
	}
	return found, nil
}

func dropsAll(r *nftables.Rule) (drops bool) {
	for _, e := range r.Exprs {
		switch e := e.(type) {
		case *expr.Counter, *expr.Log:
		case *expr.Match:
			if e.Name != "comment" {
				return false
			}
		case *expr.Reject:
			drops = true
		case *expr.Target:
			drops = e.Name == "REJECT" || e.Name == "DROP"
		case *expr.Verdict:
			drops = e.Kind == expr.VerdictDrop
		default:
			return false
		}
	}
	return drops
}

func routes(family nftables.TableFamily) bool {
	return family == nftables.TableFamilyIPv4 || family == nftables.TableFamilyIPv6 || family == nftables.TableFamilyINet
}

var families = map[nftables.TableFamily]string{
	nftables.TableFamilyIPv4: "ip", nftables.TableFamilyIPv6: "ip6", nftables.TableFamilyINet: "inet",
	nftables.TableFamilyBridge: "bridge", nftables.TableFamilyARP: "arp", nftables.TableFamilyNetdev: "netdev",
}

// From include/uapi/linux/netfilter_ipv4/ip_tables.h and netfilter_ipv6/ip6_tables.h, equal on all 64-bit platforms.
const (
	soGetInfo    = 64       // IPT_SO_GET_INFO, IP6T_SO_GET_INFO
	soGetEntries = 65       // IPT_SO_GET_ENTRIES, IP6T_SO_GET_ENTRIES
	tableName    = 32       // XT_TABLE_MAXNAMELEN
	infoSize     = 84       // struct ipt_getinfo
	maxTable     = 64 << 20 // bytes that are read: about 100,000 rules
)

// ipVersion has the offset of target_offset in struct ipt_entry or ip6t_entry, and its size.
type ipVersion struct {
	family        string
	domain, level int
	names         string
	targetAt      int
	entry         int
}

var ipVersions = []ipVersion{
	{"ip", unix.AF_INET, unix.IPPROTO_IP, "/proc/thread-self/net/ip_tables_names", 88, 112},
	{"ip6", unix.AF_INET6, unix.IPPROTO_IPV6, "/proc/thread-self/net/ip6_tables_names", 140, 168},
}

// legacyChains makes no table, as a query of a missing one would.
func legacyChains() (found []fact.Chain, err error) {
	for _, v := range ipVersions {
		names, err := os.ReadFile(v.names)
		if errors.Is(err, fs.ErrNotExist) {
			continue // not loaded
		}
		if err != nil {
			return found, fmt.Errorf("cannot read legacy iptables: %w", err)
		}
		for _, table := range strings.Fields(string(names)) {
			chains, err := v.chains(table)
			if err != nil {
				return found, fmt.Errorf("cannot read table %s of legacy iptables: %w", table, err)
			}
			for _, c := range chains {
				c.Backend, c.Family, c.Table = "iptables-legacy", v.family, fact.Clean(table)
				found = append(found, c)
			}
		}
	}
	return found, nil
}

func (v ipVersion) chains(table string) ([]fact.Chain, error) {
	// A raw socket would need CAP_NET_RAW.
	fd, err := unix.Socket(v.domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	info := make([]byte, infoSize)
	copy(info[:tableName-1], table)
	if err := getsockopt(fd, v.level, soGetInfo, info); err != nil {
		return nil, err
	}
	size := binary.NativeEndian.Uint32(info[infoSize-4:])
	if size > maxTable {
		return nil, fmt.Errorf("it is larger than %d bytes", maxTable)
	}
	// struct ipt_get_entries: name, size, and entries at the next multiple of 8.
	const head = tableName + 8
	entries := make([]byte, head+int(size))
	copy(entries[:tableName-1], table)
	binary.NativeEndian.PutUint32(entries[tableName:], size)
	if err := getsockopt(fd, v.level, soGetEntries, entries); err != nil {
		return nil, err // EAGAIN: it changed since
	}
	own := v.parse(entries[head:])
	if forward := v.forward(info, entries[head:]); forward.Drops {
		own = slices.Insert(own, 0, forward)
	}
	return own, nil
}

// forward counts FORWARD's rules. In struct ipt_getinfo the valid hooks, and each hook's chain and policy offsets
// follow the name.
func (v ipVersion) forward(info, b []byte) fact.Chain {
	c := fact.Chain{Name: "FORWARD"}
	const hook, hooks = 2, 5 // NF_INET_FORWARD, NF_INET_NUMHOOKS
	word := func(i int) int { return int(binary.NativeEndian.Uint32(info[tableName+4*i:])) }
	at, policy := word(1+hook), word(1+hooks+hook)
	if word(0)&(1<<hook) == 0 || at > policy || policy < 0 || policy+v.entry+36 > len(b) {
		return c
	}
	// struct xt_standard_target: a head of 32 bytes, then the verdict, -NF_DROP - 1.
	c.Drops = int32(binary.NativeEndian.Uint32(b[policy+v.entry+32:])) == -1
	for at < policy {
		next := int(binary.NativeEndian.Uint16(b[at+v.targetAt+2:]))
		if next < v.entry {
			break // never from the kernel
		}
		at, c.Rules = at+next, c.Rules+1
	}
	return c
}

// parse returns the user-defined chains: each head has the target ERROR with the chain's name; the last rule is the
// return.
func (v ipVersion) parse(b []byte) (chains []fact.Chain) {
	for len(b) >= v.entry {
		target := int(binary.NativeEndian.Uint16(b[v.targetAt:]))
		next := int(binary.NativeEndian.Uint16(b[v.targetAt+2:]))
		if next < v.entry || next > len(b) {
			return chains // never from the kernel
		}
		// struct xt_entry_target: 2 bytes of size, 29 of name, 1 of revision; then xt_error_target's name.
		if t := b[:next]; target >= v.entry && target+32 < next && unix.ByteSliceToString(t[target+2:target+31]) == "ERROR" {
			if name := unix.ByteSliceToString(t[target+32:]); name != "ERROR" {
				chains = append(chains, fact.Chain{Name: fact.Clean(name), Rules: -1})
			}
		} else if len(chains) > 0 {
			chains[len(chains)-1].Rules++
		}
		b = b[next:]
	}
	return chains
}

// getsockopt is missing in golang.org/x/sys.
func getsockopt(fd, level, name int, b []byte) error {
	size := uint32(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
