package probe

import (
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
)

// assigned is what a message says of an address of an interface (rtnetlink(7), struct
// ifaddrmsg).
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
	attributes(rest, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case unix.IFA_LOCAL:
			local = ad.Bytes()
		case unix.IFA_ADDRESS: // of a link between two the other end, else the same
			address = ad.Bytes()
		case unix.IFA_FLAGS: // those above the eighth bit, too
			a.flags = ad.Uint32()
		}
	})
	if local == nil {
		local = address
	}
	a.address = prefix(local, m.Prefixlen)
	return a, true
}

// address reads what is asked for of an interface's address.
func (in *interior) address(q *event.Request, r record, m netlink.Message) {
	a, ok := assignment(m.Data)
	if !ok {
		return
	}
	q.Interface.Index, q.Address = a.index, a.address
	if p := in.processes[r.process]; p != nil && m.Header.Type == unix.RTM_NEWADDR && a.six {
		p.mark(a.key(q.NetNS), "")
	}
}

// told is what a process learns of an IPv6 address, if that is new. Of those that it
// neither asked for nor saw tentative there is nothing to say: they were there before. Nor
// is there of other pods' interfaces, which are in every list of the node's namespace.
func (in *interior) told(r record, m netlink.Message) *event.Address {
	p := in.processes[r.process]
	a, ok := assignment(m.Data)
	if p == nil || !ok || !a.six || a.address == "" {
		return nil
	}
	ns := namespace(r.NetnsCookie, r.NetnsInum)
	state := a.state()
	last, known := p.addresses[a.key(ns)]
	if known && last == state || !known && (state == event.AddressReady || !in.concerned(p, ns, a.index)) {
		return nil
	}
	if !p.mark(a.key(ns), state) {
		return nil
	}
	return &event.Address{Process: r.process, NetNS: ns, Index: a.index, Address: a.address, State: state}
}

// touch remembers the interface that a request changes.
func (in *interior) touch(q *event.Request) {
	p := in.processes[q.Process]
	if p == nil || q.Query() || q.Interface.Index == 0 {
		return
	}
	if leader := in.processes[p.leader]; leader != nil {
		p = leader
	}
	if p.touched == nil {
		p.touched = map[string]bool{}
	}
	if len(p.touched) < maxTouched {
		p.touched[place(q.NetNS, q.Interface.Index)] = true
	}
}

// concerned tells whether an interface is any of a plugin's business: it changed it, or
// it is in the pod.
func (in *interior) concerned(p *inhabitant, ns event.Namespace, index uint32) bool {
	if leader := in.processes[p.leader]; leader != nil {
		p = leader
	}
	return p.home != "" && p.home != ns.Key || p.touched[place(ns, index)]
}

func place(ns event.Namespace, index uint32) string {
	return fmt.Sprintf("%s %d", ns.Key, index)
}

// state is how far duplicate address detection has come: a duplicate stays tentative.
func (a assigned) state() event.AddressState {
	switch {
	case a.flags&unix.IFA_F_DADFAILED != 0:
		return event.AddressDuplicate
	case a.flags&unix.IFA_F_TENTATIVE != 0:
		return event.AddressTentative
	}
	return event.AddressReady
}

func (a assigned) key(ns event.Namespace) string {
	return place(ns, a.index) + " " + a.address
}

// mark keeps the state of an address; false if there are too many already.
func (p *inhabitant) mark(key string, state event.AddressState) bool {
	if p.addresses == nil {
		p.addresses = map[string]event.AddressState{}
	}
	if _, known := p.addresses[key]; !known && len(p.addresses) >= maxAddresses {
		return false
	}
	p.addresses[key] = state
	return true
}

// ipOf is an address of either family; empty for what has another length.
func ipOf(b []byte) string {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return ""
	}
	return a.String()
}

// prefix is an address with how many bits of it are the network's.
func prefix(b []byte, bits uint8) string {
	a, ok := netip.AddrFromSlice(b)
	if !ok {
		return ""
	}
	if p := netip.PrefixFrom(a, int(bits)); p.IsValid() {
		return p.String()
	}
	return a.String()
}
