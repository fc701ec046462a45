package netlink

import (
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
	attributes(rest, func(ad attribute) {
		switch ad.Type() {
		case unix.IFLA_MASTER:
			i.Master = ad.Uint32()
		case unix.IFLA_LINKINFO:
			c.kind(i, ad.Bytes())
		case unix.IFLA_NET_NS_FD, unix.IFLA_NET_NS_PID:
			i.NetNS = c.namespace(ad)
		default:
			named(i, ad)
		}
	})
}

func named(i *event.Interface, ad attribute) {
	switch ad.Type() {
	case unix.IFLA_IFNAME:
		i.Name = foreign(ad.Bytes(), unix.IFNAMSIZ)
	case unix.IFLA_ALT_IFNAME:
		if i.Name == "" {
			i.Name = foreign(ad.Bytes(), altIfNameSize)
		}
	case unix.IFLA_ADDRESS:
		i.MAC = mac(ad.Bytes())
	case unix.IFLA_MTU:
		i.MTU = ad.Uint32()
	}
}

func (c *Call) kind(i *event.Interface, info []byte) {
	var data []byte
	attributes(info, func(ad attribute) {
		switch ad.Type() {
		case unix.IFLA_INFO_KIND:
			i.Kind = foreign(ad.Bytes(), kindSize)
		case unix.IFLA_INFO_DATA:
			data = ad.Bytes()
		}
	})
	if i.Kind != "veth" {
		return
	}
	attributes(data, func(ad attribute) {
		var m unix.IfInfomsg
		rest, ok := fixed(ad.Bytes(), &m)
		if ad.Type() != vethInfoPeer || !ok {
			return
		}
		attributes(rest, func(ad attribute) {
			switch ad.Type() {
			case unix.IFLA_IFNAME:
				i.Peer = foreign(ad.Bytes(), unix.IFNAMSIZ)
			case unix.IFLA_NET_NS_FD, unix.IFLA_NET_NS_PID:
				i.PeerNetNS = c.namespace(ad)
			}
		})
	})
}

func (c *Call) namespace(ad attribute) event.Namespace {
	if ad.Type() == unix.IFLA_NET_NS_FD {
		return c.ByFile(ad.Uint32())
	}
	return c.ByPID(ad.Uint32())
}

func (c *Call) linkName(data []byte) *event.Link {
	var m unix.IfInfomsg
	rest, ok := fixed(data, &m)
	if !ok || m.Index <= 0 {
		return nil
	}
	l := &event.Link{Process: c.Process, NetNS: c.NetNS, Index: uint32(m.Index)}
	attributes(rest, func(ad attribute) {
		if ad.Type() == unix.IFLA_IFNAME {
			l.Name = foreign(ad.Bytes(), unix.IFNAMSIZ)
		}
	})
	if l.Name == "" {
		return nil
	}
	return l
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
	var local, address []byte
	attributes(rest, func(ad attribute) {
		switch ad.Type() {
		case unix.IFA_LOCAL:
			local = ad.Bytes()
		case unix.IFA_ADDRESS: // on a point-to-point link the other end
			address = ad.Bytes()
		case unix.IFA_FLAGS: // beyond the header's eight bits
			a.flags = ad.Uint32()
		}
	})
	if local == nil {
		local = address
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
