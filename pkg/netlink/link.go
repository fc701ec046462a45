package netlink

import (
	"github.com/mdlayher/netlink"

	"github.com/cniscope/cniscope/pkg/event"
)

// link reads a struct ifinfomsg (rtnetlink(7)).
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
		q.Verb = event.VerbQuery // ip probes the kernel in this way
	}
	// An empty mask means all (rtnl_dev_get_flags), if any flag is set.
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

func (c *Call) namespace(ad *netlink.AttributeDecoder) event.Namespace {
	if ad.Type() == iflaNetNSFD {
		return c.ByFile(ad.Uint32())
	}
	return c.ByPID(ad.Uint32())
}

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

// assigned is the content of a struct ifaddrmsg (rtnetlink(7)).
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
		case ifaAddress: // on a point-to-point link the other end
			address = ad.Bytes()
		case ifaFlags: // beyond the header's eight bits
			a.flags = ad.Uint32()
		}
	})
	if local == nil {
		local = address
	}
	a.address = prefix(local, m.PrefixLen)
	return a, true
}

// addressState returns nil for an IPv4 address.
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
