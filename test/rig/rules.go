//go:build linux

package rig

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

type table struct {
	name   string
	chains []string
	rules  []string // as saved: `-A CHAIN …`
}

func parseTables(save string) []table {
	var tables []table
	for line := range strings.Lines(save) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "*"); ok {
			tables = append(tables, table{name: name})
			continue
		}
		if len(tables) == 0 {
			continue
		}
		t := &tables[len(tables)-1]
		if chain, ok := strings.CutPrefix(line, ":"); ok {
			t.chains = append(t.chains, strings.Fields(chain)[0])
		} else if strings.HasPrefix(line, "-A ") {
			t.rules = append(t.rules, line)
		}
	}
	return tables
}

func chainOf(rule string) string { return strings.Fields(rule)[1] }

func targetOf(rule string) string {
	f := strings.Fields(rule)
	if i := slices.Index(f, "-j"); i >= 0 && i+1 < len(f) {
		return f[i+1]
	}
	return ""
}

func within(rule string, subnets []netip.Prefix) bool {
	for _, word := range strings.Fields(rule) {
		prefix, err := netip.ParsePrefix(word)
		if err != nil {
			addr, err := netip.ParseAddr(word)
			if err != nil {
				pair, err := netip.ParseAddrPort(word)
				if err != nil {
					continue
				}
				addr = pair.Addr()
			}
			prefix = netip.PrefixFrom(addr, addr.BitLen())
		}
		for _, s := range subnets {
			if s.Contains(prefix.Addr()) && s.Bits() <= prefix.Bits() {
				return true
			}
		}
	}
	return false
}

// shared lists the chains that CNI plugins create once; others belong to one pod.
var shared = map[string]bool{
	"CNI-HOSTPORT-DNAT": true, "CNI-HOSTPORT-SETMARK": true, "CNI-HOSTPORT-MASQ": true,
	"CNI-FORWARD": true, "CNI-ADMIN": true,
	"CNI-ISOLATION-STAGE-1": true, "CNI-ISOLATION-STAGE-2": true,
}

func perPod(chain string) bool { return strings.HasPrefix(chain, "CNI-") && !shared[chain] }

func withoutSubnets(tables []table, subnets []netip.Prefix) string {
	return script(tables, func(t table) (doomed func(string) bool, rule func(string) bool) {
		ours := map[string]bool{}
		for _, r := range t.rules {
			if perPod(chainOf(r)) && within(r, subnets) {
				ours[chainOf(r)] = true
			}
		}
		return func(c string) bool { return ours[c] }, func(r string) bool { return within(r, subnets) }
	})
}

// withoutShared removes new shared chains and those of killed plugins, if no network's pod is
// there.
func withoutShared(tables []table, before []string) string {
	return script(tables, func(t table) (doomed func(string) bool, rule func(string) bool) {
		inUse := slices.ContainsFunc(t.rules, func(r string) bool { return perPod(chainOf(r)) })
		return func(c string) bool {
			return !inUse && strings.HasPrefix(c, "CNI-") && !slices.Contains(before, t.name+"/"+c)
		}, func(string) bool { return false }
	})
}

func script(tables []table, choose func(table) (doomedChain, doomedRule func(string) bool)) string {
	var b strings.Builder
	for _, t := range tables {
		chain, rule := choose(t)
		var body strings.Builder
		for _, r := range t.rules {
			if !chain(chainOf(r)) && (rule(r) || chain(targetOf(r))) {
				fmt.Fprintf(&body, "-D %s\n", strings.TrimPrefix(r, "-A "))
			}
		}
		doomed := slices.DeleteFunc(slices.Clone(t.chains), func(c string) bool { return !chain(c) })
		for _, option := range []string{"-F", "-X"} {
			for _, c := range doomed {
				fmt.Fprintf(&body, "%s %s\n", option, c)
			}
		}
		if body.Len() > 0 {
			fmt.Fprintf(&b, "*%s\n%sCOMMIT\n", t.name, body.String())
		}
	}
	return b.String()
}

func removeRules(subnets []netip.Prefix) error {
	return errors.Join(
		rewrite(func(t []table) string { return withoutSubnets(t, subnets) }),
		nftRewrite(func(t []nftTable) string { return nftWithoutSubnets(t, subnets) }),
	)
}

// furniture lists shared remains in the host's firewall: `table/chain`, or `family table` of
// nftables.
func furniture() ([]string, error) {
	var names []string
	err := rewrite(func(tables []table) string {
		for _, t := range tables {
			for _, c := range t.chains {
				if strings.HasPrefix(c, "CNI-") {
					names = append(names, t.name+"/"+c)
				}
			}
		}
		return ""
	})
	tables, nftErr := nftTables()
	for _, t := range tables {
		names = append(names, t.name)
	}
	return names, errors.Join(err, nftErr)
}

func removeFurniture(before []string) error {
	return errors.Join(
		rewrite(func(t []table) string { return withoutShared(t, before) }),
		nftRewrite(func(t []nftTable) string { return nftWithoutTables(t, before) }),
	)
}

// rewrite applies change's script to both families' tables. A host without iptables has none.
func rewrite(change func([]table) string) error {
	for _, family := range []string{"iptables", "ip6tables"} {
		if _, err := exec.LookPath(family + "-save"); err != nil {
			continue
		}
		save, err := exec.Command(family + "-save").Output()
		if err != nil {
			return fmt.Errorf("list the firewall's rules: %s-save: %w", family, err)
		}
		text := change(parseTables(string(save)))
		if text == "" {
			continue
		}
		cmd := exec.Command(family+"-restore", "--noflush", "--wait")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s-restore: %w: %s\n%s", family, err, strings.TrimSpace(string(out)), text)
		}
	}
	return nil
}
