package netlink

import (
	"github.com/mdlayher/netlink"

	"github.com/cniscope/cniscope/pkg/event"
)

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
