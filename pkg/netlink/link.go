package netlink

import (
	"github.com/mdlayher/netlink"

	"github.com/cniscope/cniscope/pkg/event"
)

// link reads a struct ifinfomsg with its attributes (rtnetlink(7)). Only a change says
// what state the interface is to be in.
func (c *Call) link(q *event.Request, data []byte) {
	var m ifInfoMsg
	rest, ok := fixed(data, &m)
	if !ok {
		return
	}
	change := q.Verb == event.VerbAdd || q.Verb == event.VerbChange
	i := &q.Interface
	i.Index = uint32(max(m.Index, 0))
	if change && m.Index == 0 && len(rest) == 0 {
		q.Verb = event.VerbQuery // ip asks in this way whether the kernel knows the message
	}
	// A mask of none means all (rtnl_dev_get_flags), where any flag is set.
	if change && (m.Change&iffUp != 0 || m.Change == 0 && m.Flags&iffUp != 0) {
		i.State = "down"
		if m.Flags&iffUp != 0 {
			i.State = "up"
		}
	}
	if m.Family == afBridge {
		return // settings of a bridge's port
	}
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case iflaMaster:
			i.Master = ad.Uint32()
		case iflaLinkInfo:
			c.kind(i, ad.Bytes())
		case iflaNetNSFD, iflaNetNSPID:
			i.NetNS = c.namespace(ad)
		default:
			named(i, ad)
		}
	})
}

// named reads one attribute of what an interface is called and how it is set.
func named(i *event.Interface, ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case iflaIfName:
		i.Name = foreign(ad.Bytes(), ifNameSize)
	case iflaAltIfName:
		if i.Name == "" {
			i.Name = foreign(ad.Bytes(), altIfNameSize)
		}
	case iflaAddress:
		i.MAC = mac(ad.Bytes())
	case iflaMTU:
		i.MTU = ad.Uint32()
	}
}

// kind reads what sort of interface it is, and of a veth pair its other end.
func (c *Call) kind(i *event.Interface, info []byte) {
	var data []byte
	attributes(info, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case iflaInfoKind:
			i.Kind = foreign(ad.Bytes(), kindSize)
		case iflaInfoData:
			data = ad.Bytes()
		}
	})
	if i.Kind != "veth" {
		return
	}
	attributes(data, func(ad *netlink.AttributeDecoder) {
		var m ifInfoMsg
		rest, ok := fixed(ad.Bytes(), &m)
		if ad.Type() != vethInfoPeer || !ok {
			return
		}
		attributes(rest, func(ad *netlink.AttributeDecoder) {
			switch ad.Type() {
			case iflaIfName:
				i.Peer = foreign(ad.Bytes(), ifNameSize)
			case iflaNetNSFD, iflaNetNSPID:
				i.PeerNetNS = c.namespace(ad)
			}
		})
	})
}

// namespace is the one that an attribute names, by a descriptor or by a process in it.
func (c *Call) namespace(ad *netlink.AttributeDecoder) event.Namespace {
	if ad.Type() == iflaNetNSFD {
		return c.ByFile(ad.Uint32())
	}
	return c.ByPID(ad.Uint32())
}

// linkName is what an answer says an interface is called; nil if it says nothing.
func (c *Call) linkName(data []byte) *event.Link {
	var m ifInfoMsg
	rest, ok := fixed(data, &m)
	if !ok || m.Index <= 0 {
		return nil
	}
	l := &event.Link{Process: c.Process, NetNS: c.NetNS, Index: uint32(m.Index)}
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == iflaIfName {
			l.Name = foreign(ad.Bytes(), ifNameSize)
		}
	})
	if l.Name == "" {
		return nil
	}
	return l
}

// assigned is what a message says of an interface's address (rtnetlink(7), struct ifaddrmsg).
type assigned struct {
	index   uint32
	address string // with its prefix
	six     bool
	flags   uint32
}

func assignment(data []byte) (a assigned, ok bool) {
	var m ifAddrMsg
	rest, ok := fixed(data, &m)
	if !ok {
		return a, false
	}
	a.index, a.six, a.flags = m.Index, m.Family == afInet6, uint32(m.Flags)
	var local, address []byte
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case ifaLocal:
			local = ad.Bytes()
		case ifaAddress: // on a point-to-point link the other end, else the same
			address = ad.Bytes()
		case ifaFlags: // with those above the eighth bit
			a.flags = ad.Uint32()
		}
	})
	if local == nil {
		local = address
	}
	a.address = prefix(local, m.PrefixLen)
	return a, true
}

// addressState is how far an answer says that duplicate address detection has come; nil if it
// is about an IPv4 address.
func (c *Call) addressState(data []byte) *event.Address {
	a, ok := assignment(data)
	if !ok || !a.six || a.address == "" {
		return nil
	}
	state := event.AddressReady
	switch {
	case a.flags&ifaFDADFailed != 0: // it stays tentative
		state = event.AddressDuplicate
	case a.flags&ifaFTentative != 0:
		state = event.AddressTentative
	}
	return &event.Address{Process: c.Process, NetNS: c.NetNS, Index: a.index, Address: a.address, State: state}
}
