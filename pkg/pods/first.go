package pods

import (
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// first is how long after its setup a pod's first connection is still waited for.
const first = time.Minute

// namespacesMax is how many namespaces one setup may have made or entered.
const namespacesMax = 4

// firsts are the first connections of pods: the namespaces in which they are waited for, and
// those that came when the setup was over and were not asked for.
type firsts struct {
	limit      int
	namespaces map[string]*namespace // by key
	over       []model.Connected
}

type namespace struct {
	op *active.Operation // nil once that is over
	// of is what is said then, and until is how long it is waited for.
	of    model.Connected
	since int64
	until int64
}

// Entered learns that a process works on a namespace: that of the pod, if it is not
// the one that the runtime started the plugin in.
func (f *firsts) Entered(now int64, p *active.Process, ns event.Namespace) {
	op := p.Op
	if ns.Key == "" || op.Kind != model.Setup || ns.Key == p.Run.NetNS.Key || ns.Key == p.Call.Runs[0].NetNS.Key || p.Run.NetNS.Key == "" {
		return
	}
	known := f.namespaces[ns.Key]
	if known != nil && known.op == op {
		return
	}
	if op.Namespaces >= namespacesMax {
		return
	}
	if known == nil {
		evict(f.namespaces, f.limit, func(n *namespace) int64 { return n.since }, func(key string) { delete(f.namespaces, key) })
	}
	op.Namespaces++
	f.namespaces[ns.Key] = &namespace{op: op, since: now}
}

// Established takes the first connection in a namespace.
func (f *firsts) Established(now int64, c *event.FirstConnection) {
	n := f.namespaces[c.NetNS.Key]
	if n == nil {
		return // of nobody's pod, or too late
	}
	delete(f.namespaces, c.NetNS.Key)
	if n.op != nil {
		if call := n.op.Network(); call != nil && call.First == nil {
			call.First = &model.FirstConnection{At: now, Local: c.Local, Remote: c.Remote}
		}
		return
	}
	if now > n.until {
		return
	}
	n.of.At, n.of.Local, n.of.Remote = now, c.Local, c.Remote
	f.over = append(f.over, n.of)
}

// leave keeps what will be said of the first connection in the namespaces of op, which is over.
func (f *firsts) leave(op *active.Operation) {
	if op.Namespaces == 0 {
		return
	}
	call := op.Network()
	for key, n := range f.namespaces {
		switch {
		case n.op != op:
		case call == nil || call.First != nil:
			delete(f.namespaces, key)
		default:
			n.op, n.until = nil, call.End+int64(first)
			n.of = model.Connected{Flight: op.Flight(call, call.Runs[0], op.Runtime), End: call.End}
		}
	}
}

// forget says that nobody wants to know what comes after an operation that is over.
func (f *firsts) forget(key model.Key) {
	for name, n := range f.namespaces {
		if n.op == nil && n.of.Operation == key {
			delete(f.namespaces, name)
		}
	}
}

func (f *firsts) expire(now int64) {
	for key, n := range f.namespaces {
		if n.op == nil && now > n.until {
			delete(f.namespaces, key)
		}
	}
}
