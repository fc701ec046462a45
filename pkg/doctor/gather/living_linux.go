package gather

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// interfacesMax take 12 MiB. A pod with CAP_NET_ADMIN can give the node 1,000 a second.
const interfacesMax = 4096

func interfaces() ([]netlink.Link, error) {
	names, err := list(view{sure: true}, "/sys/class/net", interfacesMax+1)
	if err != nil || len(names) > interfacesMax {
		return nil, cmp.Or(err, fmt.Errorf("there are more than %d", interfacesMax))
	}
	return complete(netlink.LinkList)
}

func complete[T any](dump func() (T, error)) (all T, err error) {
	for range 5 {
		if all, err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

func things(wanted []string) (here map[string]bool, err error) {
	here = map[string]bool{}
	if !slices.ContainsFunc(wanted, func(thing string) bool { return !strings.HasPrefix(thing, "chain ") }) {
		return here, nil
	}
	links, err := interfaces()
	if err != nil {
		return here, fmt.Errorf("cannot list the interfaces: %w", err)
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	for _, l := range links {
		here[leak.Port(l.Attrs().Name, names[l.Attrs().MasterIndex])] = true
	}
	addresses, err := netlink.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return here, fmt.Errorf("cannot list the addresses: %w", err)
	}
	for _, a := range addresses {
		here[leak.Address(destination(a.IPNet), names[a.LinkIndex])] = true
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		rules, err := netlink.RuleList(family)
		if err != nil {
			return here, fmt.Errorf("cannot list the routing rules: %w", err)
		}
		for _, r := range rules {
			for _, dev := range []string{r.IifName, r.OifName} {
				here[leak.Rule(destination(r.Src), destination(r.Dst), dev, strconv.Itoa(r.Table))] = true
			}
		}
		err = netlink.RouteListFilteredIter(family, &netlink.Route{}, netlink.RT_FILTER_TABLE, func(r netlink.Route) bool {
			to, table := destination(r.Dst), ""
			if r.Table != unix.RT_TABLE_MAIN {
				table = strconv.Itoa(r.Table)
			}
			if to == "" || strings.HasSuffix(to, "/0") {
				to = "default"
			}
			here[leak.Route(to, table)] = true
			return true
		})
		if err != nil {
			return here, fmt.Errorf("cannot list the routes: %w", err)
		}
	}
	return here, nil
}

func destination(n *net.IPNet) string {
	if p, ok := prefixOf(n); ok {
		return p.String()
	}
	return ""
}

// staleNeighbors finds pods' permanent IPv4 neighbors with a MAC address of no interface of the node, and a silent
// gateway. Only a pod at a veth without a bridge sends nothing to others.
func staleNeighbors(sees view, r *procfs.Residents, living []leak.Attachment) map[string][]event.Obstacle {
	found, pods := map[string][]event.Obstacle{}, map[uint32]string{}
	in := folders{sees, map[string]string{}}
	for _, pod := range living {
		if pod.NetNS == "" {
			continue
		}
		var s unix.Stat_t
		err := unix.Lstat(in.path(pod.NetNS), &s)
		if err == nil && s.Mode&unix.S_IFMT == unix.S_IFLNK {
			err = unix.Stat(sees.path(pod.NetNS), &s)
		}
		if err == nil {
			pods[uint32(s.Ino)] = pod.ContainerID
		}
	}
	ends := sync.OnceValues(vethEnds)
	for pid, inode := range procfs.Inside(r, pods) {
		sandbox := pods[inode]
		delete(pods, inode)
		netns := sync.OnceValues(func() (int, error) { return netlink.GetNetNsIdByPid(pid) })
		routes, asked := sync.OnceValue(func() string { return procfs.Net(pid, "route") }), false
		for _, n := range telling(pid) {
			ends, known := ends()
			id, err := netns()
			end := ends[[2]int{id, n.index}]
			switch {
			case err != nil, end == nil, !n.silent && known[n.mac]:
				continue
			case n.silent && (asked || !strings.Contains(routes(), n.gateway())):
				continue
			}
			asked = asked || n.silent
			o := event.Obstacle{
				Kind: event.ObstacleNeighbor, Name: fact.Sayf("the pod's permanent neighbor %s has the MAC address %s, but its "+
					"link's other end, %s, has %s", n.address, n.mac, end.Attrs().Name, end.Attrs().HardwareAddr.String()),
			}
			if n.silent {
				o = unproxied(end.Attrs().Name, n.address)
			}
			if o.Name != "" {
				found[sandbox] = []event.Obstacle{o}
				break
			}
		}
	}
	return found
}

// unproxied has no Name if the node answers a pod's ARP for its gateway.
func unproxied(at, address string) event.Obstacle {
	o := event.Obstacle{Kind: event.ObstacleProxy}
	routes, err := netlink.RouteGet(net.ParseIP(address))
	all, _ := number(sysctls + "ipv4/conf/all/proxy_arp")
	own, unread := number(sysctls + "ipv4/conf/" + at + "/proxy_arp")
	switch {
	case err == nil && (len(routes) == 0 || routes[0].Type == unix.RTN_LOCAL) || unread != nil:
	case all == 0 && own == 0:
		o.Option = "net/ipv4/conf/" + at + "/proxy_arp"
		o.Name = fact.Sayf("%s is 0, so the node does not answer the pod's ARP requests for %s", o.Option, address)
	case err != nil:
		o.Name = fact.Sayf("the node has no route to %s, so it does not answer the pod's ARP requests for it", address)
	}
	return o
}

// reused finds neighbors with a pod's address but another MAC address.
func reused(living []leak.Attachment) (all []fact.Gone) {
	const other = netlink.NUD_INCOMPLETE | netlink.NUD_FAILED | netlink.NUD_NOARP | netlink.NUD_NONE
	neighbors := map[string][]netlink.Neigh{}
	list, _ := netlink.NeighList(0, netlink.FAMILY_ALL)
	for _, n := range list {
		if n.State&other == 0 {
			neighbors[n.IP.String()] = append(neighbors[n.IP.String()], n)
		}
	}
	for _, pod := range living {
		var same []netlink.Neigh
		for _, a := range pod.Addresses {
			ip, _, _ := strings.Cut(a, "/")
			same = append(same, neighbors[ip]...)
		}
		for _, n := range same {
			if len(pod.MACs) == 0 || slices.Contains(pod.MACs, n.HardwareAddr.String()) {
				continue
			}
			if dev, err := netlink.LinkByIndex(n.LinkIndex); err == nil && slices.Contains(pod.Links, dev.Attrs().Name) {
				all = append(all, fact.Gone{Attachment: pod, Obstacles: []event.Obstacle{{
					Kind: event.ObstacleReused, Option: fmt.Sprintf("%s dev %s", n.IP, text.Shell(dev.Attrs().Name)),
					Name: fact.Sayf("the node's neighbor entry of %s has the MAC address %s, but the pod has %s", n.IP.String(),
						n.HardwareAddr.String(), strings.Join(pod.MACs, ", ")),
				}}})
				break
			}
		}
	}
	return all
}

func vethEnds() (ends map[[2]int]netlink.Link, known map[string]bool) {
	ends, known = map[[2]int]netlink.Link{}, map[string]bool{}
	links, _ := interfaces()
	for _, l := range links {
		a := l.Attrs()
		known[a.HardwareAddr.String()] = true
		if l.Type() == "veth" && a.MasterIndex == 0 && a.NetNsID >= 0 {
			ends[[2]int{a.NetNsID, a.ParentIndex}] = l
		}
	}
	return ends, known
}

type neighbor struct {
	address, mac string
	index        int // of its interface
	silent       bool
}

func (n neighbor) gateway() string {
	ip := net.ParseIP(n.address).To4()
	if ip == nil {
		return "no address"
	}
	return fmt.Sprintf("\t%08X\t", binary.NativeEndian.Uint32(ip))
}

func telling(pid int) (all []neighbor) {
	const complete, permanent = 0x2, 0x4 // ATF_COM, ATF_PERM
	indexes := sync.OnceValue(func() map[string]int { return indexesIn(pid) })
	for line := range strings.Lines(procfs.Net(pid, "arp")) {
		f := strings.Fields(line)
		if len(f) != 6 {
			continue
		}
		flags, err := strconv.ParseUint(f[2], 0, 32)
		if err == nil && flags&(complete|permanent) != complete && indexes()[f[5]] != 0 {
			all = append(all, neighbor{f[0], f[3], indexes()[f[5]], flags&complete == 0})
		}
	}
	return all
}

func indexesIn(pid int) map[string]int {
	indexes := map[string]int{}
	for line := range strings.Lines(procfs.Net(pid, "igmp")) {
		if f := strings.Fields(line); len(f) > 1 && line[0] != '\t' {
			indexes[f[1]], _ = strconv.Atoi(f[0])
		}
	}
	return indexes
}
