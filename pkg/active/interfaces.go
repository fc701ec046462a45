package active

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// place identifies an interface. The kernel reuses an index only after all others (net/core/dev.c, dev_index_reserve).
type place struct {
	netns string
	index uint32
}

// Interfaces are the known names of network interfaces; most requests contain only an index.
type Interfaces struct {
	names map[place]string
	order []place
	limit int
}

// NewInterfaces returns an empty set for limit names.
func NewInterfaces(limit int) *Interfaces {
	return &Interfaces{names: map[place]string{}, limit: limit}
}

const (
	// InterfacesMax bounds the node's known interfaces, ownMax those of one operation.
	InterfacesMax = 2048
	ownMax        = 256
	// loopbackIndex is LOOPBACK_IFINDEX (include/net/flow.h), the same in every namespace.
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

// naming looks up the node's names, and the operation's for namespaces without a unique key.
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

func (n naming) learn(r *model.Request) {
	i := r.Interface
	if r.Object != event.ObjectLink || i.Index == 0 {
		return
	}
	if i.Name != "" {
		n.put(r.NetNS, i.Index, i.Name)
	}
	// A moved interface keeps its index, unless taken.
	if name := n.name(r.NetNS, i.Index); name != "" && i.NetNS.Key != "" && !r.Query() && n.name(i.NetNS, i.Index) == "" {
		n.put(i.NetNS, i.Index, name)
	}
}

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

// Learn stores a name returned to an agent.
func (n *Interfaces) Learn(l *event.Link) {
	if (naming{node: n}).of(l.NetNS) == n {
		n.put(place{l.NetNS.Key, l.Index}, l.Name)
	}
}

// Learn stores a name returned to a process of op.
func (op *Operation) Learn(l *event.Link) { op.names.put(l.NetNS, l.Index, l.Name) }
