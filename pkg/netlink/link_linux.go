package netlink

import (
	"cmp"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// link reads a struct ifinfomsg (rtnetlink(7)).
func (c *Call) link(q *event.Request, data []byte) {
	var m unix.IfInfomsg
	rest, ok := fixed(data, &m)
	if !ok {
		return
	}
	change := q.Verb == event.VerbAdd || q.Verb == event.VerbChange
	i := &q.Interface
	i.Index = uint32(max(m.Index, 0))
	if change && m.Index == 0 && len(rest) == 0 {
		q.Verb = event.VerbQuery // ip probes the kernel in this way
	}
	// An empty mask means all (rtnl_dev_get_flags), if any flag is set.
	if change && (m.Change&unix.IFF_UP != 0 || m.Change == 0 && m.Flags&unix.IFF_UP != 0) {
		i.State = "down"
		if m.Flags&unix.IFF_UP != 0 {
			i.State = "up"
		}
	}
	if m.Family == unix.AF_BRIDGE {
		return // settings of a bridge's port
	}
	i.Name = cmp.Or(rest.text(unix.IFLA_IFNAME, unix.IFNAMSIZ), rest.text(unix.IFLA_ALT_IFNAME, altIfNameSize))
	i.Master, i.MTU, i.MAC = rest.number(unix.IFLA_MASTER), rest.number(unix.IFLA_MTU), mac(rest.value(unix.IFLA_ADDRESS))
	i.NetNS = c.namespace(rest)
	info := attributes(rest.value(unix.IFLA_LINKINFO))
	if i.Kind = info.text(unix.IFLA_INFO_KIND, kindSize); i.Kind != "veth" {
		return
	}
	if peer, ok := fixed(attributes(info.value(unix.IFLA_INFO_DATA)).value(vethInfoPeer), &m); ok {
		i.Peer, i.PeerNetNS = peer.text(unix.IFLA_IFNAME, unix.IFNAMSIZ), c.namespace(peer)
	}
}

func (c *Call) namespace(of attributes) event.Namespace {
	switch { // in rtnl_link_get_net's order
	case of.value(unix.IFLA_NET_NS_PID) != nil:
		return c.ByPID(of.number(unix.IFLA_NET_NS_PID))
	case of.value(unix.IFLA_NET_NS_FD) != nil:
		return c.ByFile(of.number(unix.IFLA_NET_NS_FD))
	}
	return event.Namespace{}
}

func (c *Call) linkName(data []byte) *event.Link {
	var m unix.IfInfomsg
	rest, ok := fixed(data, &m)
	if !ok || m.Index <= 0 {
		return nil
	}
	name := rest.text(unix.IFLA_IFNAME, unix.IFNAMSIZ)
	if name == "" {
		return nil
	}
	return &event.Link{Process: c.Process, NetNS: c.NetNS, Index: uint32(m.Index), Name: name}
}

// assigned is the content of a struct ifaddrmsg (rtnetlink(7)).
type assigned struct {
	index   uint32
	address string // with its prefix
	six     bool
	flags   uint32
}

func assignment(data []byte) (a assigned, ok bool) {
	var m unix.IfAddrmsg
	rest, ok := fixed(data, &m)
	if !ok {
		return a, false
	}
	a.index, a.six, a.flags = m.Index, m.Family == unix.AF_INET6, uint32(m.Flags)
	if rest.value(unix.IFA_FLAGS) != nil { // beyond the header's eight bits
		a.flags = rest.number(unix.IFA_FLAGS)
	}
	local := rest.value(unix.IFA_LOCAL)
	if local == nil {
		local = rest.value(unix.IFA_ADDRESS) // on a point-to-point link the other end
	}
	a.address = prefix(local, m.Prefixlen)
	return a, true
}

func (c *Call) addressState(data []byte) *event.Address {
	a, ok := assignment(data)
	if !ok || !a.six || a.address == "" {
		return nil
	}
	state := event.AddressReady
	switch {
	case a.flags&unix.IFA_F_DADFAILED != 0: // it stays tentative
		state = event.AddressDuplicate
	case a.flags&unix.IFA_F_TENTATIVE != 0:
		state = event.AddressTentative
	}
	return &event.Address{Process: c.Process, NetNS: c.NetNS, Index: a.index, Address: a.address, State: state}
}
