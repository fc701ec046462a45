package active

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// place is where an interface is found: in a namespace, by its index there. The kernel does not give an
// index again before it has given all others (net/core/dev.c, dev_index_reserve).
type place struct {
	netns string
	index uint32
}

// Interfaces are the names of network interfaces, as far as they were told. Most requests give an index only.
type Interfaces struct {
	names map[place]string
	order []place // in which they were told first
	limit int
}

// NewInterfaces returns no names, and has room for as many as said.
func NewInterfaces(limit int) *Interfaces {
	return &Interfaces{names: map[place]string{}, limit: limit}
}

const (
	// InterfacesMax bounds the interfaces of the node whose names are known: the latest. ownMax
	// bounds those that only one operation knows: it makes or looks at some few.
	InterfacesMax = 2048
	ownMax        = 256
	// loopbackIndex is lo's in every namespace: LOOPBACK_IFINDEX (include/net/flow.h).
	loopbackIndex = 1
)

func (n *Interfaces) put(at place, name string) {
	if _, known := n.names[at]; !known {
		if len(n.order) >= n.limit {
			delete(n.names, n.order[0])
			n.order = n.order[1:]
		}
		n.order = append(n.order, at)
	}
	n.names[at] = name
}

// naming is the names that an operation knows: those of the node, and those of namespaces without a
// key that stays unique, which other operations may know by the same number.
type naming struct{ node, own *Interfaces }

func (n naming) of(ns event.Namespace) *Interfaces {
	if ns.Key == "" || ns.Key == ns.Label {
		return n.own
	}
	return n.node
}

func (n naming) name(ns event.Namespace, index uint32) string {
	switch index {
	case 0:
		return ""
	case loopbackIndex:
		return "lo"
	}
	return n.of(ns).names[place{ns.Key, index}]
}

func (n naming) put(ns event.Namespace, index uint32, name string) {
	n.of(ns).put(place{ns.Key, index}, name)
}

// learn takes an interface's index and name from a request.
func (n naming) learn(r *model.Request) {
	i := r.Interface
	if r.Object != event.ObjectLink || i.Index == 0 {
		return
	}
	if i.Name != "" {
		n.put(r.NetNS, i.Index, i.Name)
	}
	// It keeps its index where it is moved to, unless that is taken there.
	if name := n.name(r.NetNS, i.Index); name != "" && i.NetNS.Key != "" && !r.Query() && n.name(i.NetNS, i.Index) == "" {
		n.put(i.NetNS, i.Index, name)
	}
}

// resolve says which interface a request is about, by name, as far as that is known.
func (n naming) resolve(r *model.Request) {
	if r.On == "" {
		r.On = r.Interface.Name
	}
	if r.On == "" {
		r.On = n.name(r.NetNS, r.Interface.Index)
	}
	if r.Under == "" {
		r.Under = n.name(r.NetNS, r.Interface.Master)
	}
}

// Learn takes a name that the kernel told an agent.
func (n *Interfaces) Learn(l *event.Link) {
	if (naming{node: n}).of(l.NetNS) == n {
		n.put(place{l.NetNS.Key, l.Index}, l.Name)
	}
}

// Learn takes a name that the kernel told a process of op.
func (op *Operation) Learn(l *event.Link) { op.names.put(l.NetNS, l.Index, l.Name) }
