package gather

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

func ownNetwork(context.Context) (n fact.Network, err error) {
	links, err := interfaces()
	if err != nil {
		return n, fmt.Errorf("cannot list the interfaces: %w", err)
	}
	names := map[int]string{}
	addresses := map[int][]netip.Prefix{}
	all, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return n, fmt.Errorf("cannot list the addresses: %w", err)
	}
	for _, a := range all {
		if p, ok := prefixOf(a.IPNet); ok && !p.Addr().IsLinkLocalUnicast() {
			addresses[a.LinkIndex] = append(addresses[a.LinkIndex], p)
		}
	}
	for _, l := range links {
		names[l.Attrs().Index] = fact.Clean(l.Attrs().Name)
		n.Links = append(n.Links, fact.Link{
			Name: fact.Clean(l.Attrs().Name), Type: l.Type(),
			Addresses: addresses[l.Attrs().Index],
		})
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return n, fmt.Errorf("cannot list the routes: %w", err)
	}
	for _, r := range routes {
		p, ok := prefixOf(r.Dst)
		if !ok || p.Bits() == 0 || p.Addr().IsLinkLocalUnicast() || p.Addr().IsMulticast() {
			continue
		}
		learned := r.Protocol == unix.RTPROT_DHCP || r.Protocol == unix.RTPROT_RA
		n.Routes = append(n.Routes, fact.Route{Prefix: p.Masked(), Link: names[r.LinkIndex], Learned: learned})
	}
	return n, nil
}

func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	a, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if !ok || bits == 0 {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(a.Unmap(), ones), true
}
