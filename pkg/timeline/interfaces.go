package timeline

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

// interfaces are the names of network interfaces, as far as they were told. Most requests give an index only.
type interfaces struct {
	names map[place]string
	order []place // in which they were told first
	limit int
}

func newInterfaces(limit int) *interfaces {
	return &interfaces{names: map[place]string{}, limit: limit}
}

const (
	// interfacesMax bounds the interfaces of the node whose names are known: the latest. ownMax
	// bounds those that only one operation knows: it makes or looks at some few.
	interfacesMax = 2048
	ownMax        = 256
	// loopbackIndex is lo's in every namespace: LOOPBACK_IFINDEX (include/net/flow.h).
	loopbackIndex = 1
)

func (n *interfaces) put(at place, name string) {
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
type naming struct{ node, own *interfaces }

func (n naming) of(ns event.Namespace) *interfaces {
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

// link takes a name that the kernel told a process of an operation, or an agent.
func (t *Timeline) link(l *event.Link) {
	switch p := kept(t.tree.Get(l.Process)); {
	case p != nil:
		p.op.names.put(l.NetNS, l.Index, l.Name)
	case t.agents.known[l.Process] != nil && l.NetNS.Key != "" && l.NetNS.Key != l.NetNS.Label:
		t.interfaces.put(place{l.NetNS.Key, l.Index}, l.Name)
	case t.agents.known[l.Process] == nil:
		t.stats.Late++
	}
}
