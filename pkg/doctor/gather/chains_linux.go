package gather

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// chains lists the chains of the firewall: of nf_tables by netlink (iptables-nft's are
// there too), of legacy iptables by getsockopt.
func chains(context.Context) ([]fact.Chain, error) {
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
		return nil, fmt.Errorf("nf_tables: %w", err)
	}
	all, err := conn.ListChains()
	switch {
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EPROTONOSUPPORT), errors.Is(err, unix.EINVAL):
		return nil, nil // this kernel has no nf_tables
	case err != nil:
		return nil, fmt.Errorf("listing the chains of nf_tables: %w", err)
	}
	found := make([]fact.Chain, 0, len(all))
	for _, c := range all {
		found = append(found, fact.Chain{Backend: "nftables", Family: family(c.Table.Family), Table: fact.Clean(c.Table.Name), Name: fact.Clean(c.Name)})
	}
	return found, nil
}

func family(f nftables.TableFamily) string {
	switch f {
	case nftables.TableFamilyIPv4:
		return "ip"
	case nftables.TableFamilyIPv6:
		return "ip6"
	case nftables.TableFamilyINet:
		return "inet"
	case nftables.TableFamilyBridge:
		return "bridge"
	case nftables.TableFamilyARP:
		return "arp"
	}
	return "netdev"
}
