package pods

import (
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

const first = time.Minute

const namespacesMax = 4

type firsts struct {
	limit      int
	namespaces map[string]*namespace
	over       []model.Connected
}

type namespace struct {
	op    *active.Operation // nil after its end; then a connection before `until` completes `of`
	of    model.Connected
	since int64
	until int64
}

// Entered notes a process in a namespace, which is the pod's unless the runtime started the plugin there.
func (f *firsts) Entered(now int64, p *active.Process, ns event.Namespace) {
	op, home := p.Op, p.Run.NetNS.Key
	if ns.Key == "" || op.Kind != model.Setup || home == "" || ns.Key == home || ns.Key == p.Call.Runs[0].NetNS.Key {
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
		evict(f.namespaces, f.limit, func(n *namespace) int64 { return n.since }, func(key string) {
			delete(f.namespaces, key)
		})
	}
	op.Namespaces++
	f.namespaces[ns.Key] = &namespace{op: op, since: now}
}

// Established applies a namespace's first connection.
func (f *firsts) Established(now int64, c *event.FirstConnection) {
	n := f.namespaces[c.NetNS.Key]
	if n == nil {
		return // no pod, or too late
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
