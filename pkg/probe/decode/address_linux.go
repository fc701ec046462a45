package decode

import (
	"fmt"
	"net/netip"

	"github.com/cniscope/cniscope/pkg/event"
)

// askedFor remembers the IPv6 address that a request gives an interface.
func (d *Decoder) askedFor(q *event.Request) {
	if q.Object != event.ObjectAddress || q.Verb != event.VerbAdd && q.Verb != event.VerbChange {
		return
	}
	a, err := netip.ParsePrefix(q.Address)
	if p := d.processes[q.Process]; p != nil && err == nil && a.Addr().Is6() {
		p.mark(addressKey(q.NetNS, q.Interface.Index, q.Address), "")
	}
}

// told reports whether an IPv6 address has a state that its process did not know. Of those that
// it neither asked for nor saw tentative there is nothing to say: they were there before. Nor
// is there of other pods' interfaces, which are in every list of the node's namespace.
func (d *Decoder) told(a *event.Address) bool {
	p := d.processes[a.Process]
	if p == nil {
		return false
	}
	key := addressKey(a.NetNS, a.Index, a.Address)
	last, known := p.addresses[key]
	if known && last == a.State || !known && (a.State == event.AddressReady || !concerned(p, a.NetNS, a.Index)) {
		return false
	}
	return p.mark(key, a.State)
}

// touch remembers the interface that a request changes.
func (d *Decoder) touch(q *event.Request) {
	p := d.processes[q.Process]
	if p == nil || q.Query() || q.Interface.Index == 0 {
		return
	}
	if p.run.touched == nil {
		p.run.touched = map[string]bool{}
	}
	if len(p.run.touched) < maxTouched {
		p.run.touched[place(q.NetNS, q.Interface.Index)] = true
	}
}

// concerned reports whether an interface is any of a plugin's business: it changed it, or
// it is in the pod.
func concerned(p *process, ns event.Namespace, index uint32) bool {
	r := p.run
	return r.of != nil && r.of.Home.Key != "" && r.of.Home.Key != ns.Key || r.touched[place(ns, index)]
}

func place(ns event.Namespace, index uint32) string {
	return fmt.Sprintf("%s %d", ns.Key, index)
}

func addressKey(ns event.Namespace, index uint32, address string) string {
	return place(ns, index) + " " + address
}

// mark keeps the state of an address; false if there are too many already.
func (p *process) mark(key string, state event.AddressState) bool {
	if p.addresses == nil {
		p.addresses = map[string]event.AddressState{}
	}
	if _, known := p.addresses[key]; !known && len(p.addresses) >= maxAddresses {
		return false
	}
	p.addresses[key] = state
	return true
}
