//go:build linux

package rig

import (
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

// nftTable is a table of a plugin with nftables backend, named cni_…: see `nft --handle list ruleset`.
type nftTable struct {
	name  string // family and name: `inet cni_plugins_masquerade`
	rules []nftRule
}

type nftRule struct{ chain, handle, text string }

func parseNft(ruleset string) []nftTable {
	var tables []nftTable
	var chain string
	ours := false
	for line := range strings.Lines(ruleset) {
		text, handle, _ := strings.Cut(strings.TrimSpace(line), " # handle ")
		f := strings.Fields(text)
		switch {
		case len(f) > 2 && f[0] == "table":
			if ours = strings.HasPrefix(f[2], "cni_"); ours {
				tables = append(tables, nftTable{name: f[1] + " " + f[2]})
			}
		case len(f) > 1 && f[0] == "chain":
			chain = f[1]
		case ours && handle != "":
			t := &tables[len(tables)-1]
			t.rules = append(t.rules, nftRule{chain, handle, text})
		}
	}
	return tables
}

func nftWithoutSubnets(tables []nftTable, subnets []netip.Prefix) string {
	var b strings.Builder
	for _, t := range tables {
		for _, r := range t.rules {
			if within(r.text, subnets) {
				fmt.Fprintf(&b, "delete rule %s %s handle %s\n", t.name, r.chain, r.handle)
			}
		}
	}
	return b.String()
}

func nftWithoutTables(tables []nftTable, before []string) string {
	var b strings.Builder
	for _, t := range tables {
		if !slices.Contains(before, t.name) {
			fmt.Fprintf(&b, "delete table %s\n", t.name)
		}
	}
	return b.String()
}

func nftTables() ([]nftTable, error) {
	if _, err := exec.LookPath("nft"); err != nil {
		return nil, nil
	}
	out, err := exec.Command("nft", "--handle", "list", "ruleset").Output()
	if err != nil {
		return nil, fmt.Errorf("list the firewall's rules: nft: %w", err)
	}
	return parseNft(string(out)), nil
}

func nftRewrite(change func([]nftTable) string) error {
	tables, err := nftTables()
	if err != nil {
		return err
	}
	text := change(tables)
	if text == "" {
		return nil
	}
	cmd := exec.Command("nft", "--file", "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s\n%s", err, strings.TrimSpace(string(out)), text)
	}
	return nil
}
