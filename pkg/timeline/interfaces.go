package timeline

import (
	"fmt"

	"github.com/cniscope/cniscope/pkg/event"
)

// interfaces are the names of network interfaces, by namespace and index, as far as the
// requests of an operation tell them. Most requests give an index only.
type interfaces map[string]string

func (n interfaces) key(namespace string, index uint32) string {
	return fmt.Sprint(namespace, " ", index)
}

func (n interfaces) name(namespace string, index uint32) string {
	switch index {
	case 0:
		return ""
	case loopbackIndex:
		return "lo"
	}
	return n[n.key(namespace, index)]
}

// loopbackIndex is lo's in every namespace: LOOPBACK_IFINDEX (include/net/flow.h).
const loopbackIndex = 1

// interfacesMax bounds what one operation learns: it makes or looks at some few.
const interfacesMax = 256

// learn takes an interface's index and name from a request.
func (n interfaces) learn(r *Request) {
	i := r.Interface
	if r.Object != event.ObjectLink || i.Index == 0 || len(n) >= interfacesMax {
		return
	}
	if i.Name != "" {
		n[n.key(r.NetNS.Key, i.Index)] = i.Name
	}
	// It keeps its index where it is moved to, unless that is taken there.
	if name := n.name(r.NetNS.Key, i.Index); name != "" && i.NetNS.Key != "" && !r.Query() {
		if to := n.key(i.NetNS.Key, i.Index); n[to] == "" {
			n[to] = name
		}
	}
}

func (n interfaces) link(l *event.Link) {
	if len(n) < interfacesMax {
		n[n.key(l.NetNS.Key, l.Index)] = l.Name
	}
}

// resolve says which interface a request is about, by name, as far as that is known.
func (n interfaces) resolve(r *Request) {
	if r.On == "" {
		r.On = r.Interface.Name
	}
	if r.On == "" {
		r.On = n.name(r.NetNS.Key, r.Interface.Index)
	}
	if r.Under == "" {
		r.Under = n.name(r.NetNS.Key, r.Interface.Master)
	}
}
