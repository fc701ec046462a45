package pods

import (
	"maps"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

const first = time.Minute

const namespacesMax = 4

// lookPatience bounds the wait for an event.Look.
const lookPatience = 5 * time.Second

type firsts struct {
	limit       int
	late        time.Duration
	namespaces  map[string]*namespace
	over, asked []model.Connected
}

type namespace struct {
	id    event.Namespace
	op    *active.Operation // nil after its end; then a connection before `until` completes `of`
	of    model.Connected   // once At is set, it waits for a look until `until`
	since int64
	until int64
}

func (f *firsts) Entered(now int64, p *active.Process, ns event.Namespace) {
	op, home := p.Op, p.Run.NetNS.Key
	known := f.namespaces[ns.Key]
	if known != nil && known.leaves(op) { // looks from now on find what its DEL deletes
		delete(f.namespaces, ns.Key)
		f.end(known, now)
	}
	if ns.Key == "" || op.Kind != model.Setup || home == "" || ns.Key == home || ns.Key == p.Call.Runs[0].NetNS.Key {
		return
	}
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
	f.namespaces[ns.Key] = &namespace{id: ns, op: op, since: now}
}

func (f *firsts) Contact(now int64, b event.Body) {
	switch b := b.(type) {
	case *event.FirstConnection:
		f.established(now, b)
	case *event.Look:
		if b.Found == nil {
			f.looked(b)
		}
	}
}

func (f *firsts) established(now int64, c *event.FirstConnection) {
	n := f.namespaces[c.NetNS.Key]
	if n == nil || n.of.At != 0 {
		return // no pod, too late, or not the first
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
	if n.of.Late = f.late > 0 && now-n.of.End >= int64(f.late); !n.of.Late {
		f.over = append(f.over, n.of)
		return
	}
	f.namespaces[c.NetNS.Key], n.until = n, now+int64(lookPatience)
	f.asked = append(f.asked, n.of)
}

func (f *firsts) looked(l *event.Look) {
	for key, n := range f.namespaces {
		if n.op != nil || n.of.ContainerID != l.ContainerID || l.NetNS.Key != "" && l.NetNS.Key != key {
			continue
		}
		if n.of.Tries = l.Tries; len(l.Obstacles) > 0 {
			n.of.Obstacles = l.Obstacles
		}
		if len(l.Drops) > 0 {
			n.of.Drops = l.Drops
		}
		if n.of.At != 0 && l.Connected {
			delete(f.namespaces, key)
			f.over = append(f.over, n.of)
		}
	}
}

func (f *firsts) flush(now int64, all bool) {
	for key, n := range f.namespaces {
		if n.op == nil && (all || now > n.until) {
			delete(f.namespaces, key)
			f.end(n, min(now, n.until))
		}
	}
}

func (f *firsts) end(n *namespace, at int64) {
	if n.of.At == 0 && at-n.of.End >= int64(f.late) && len(n.of.Drops)+len(n.of.Obstacles) > 0 {
		n.of.At, n.of.Late, n.of.Never = at, true, true
	}
	if n.of.At != 0 {
		f.over = append(f.over, n.of)
	}
}

func (n *namespace) leaves(op *active.Operation) bool {
	return op.Kind == model.Teardown && op.Vouched() && n.op == nil && n.of.ContainerID == op.ContainerID
}

func (f *firsts) leave(op *active.Operation) {
	maps.DeleteFunc(f.namespaces, func(_ string, n *namespace) bool { return n.of.At == 0 && n.leaves(op) })
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
			n.of = model.Connected{Flight: op.Flight(call, call.Runs[0], op.Runtime), NetNS: n.id, End: call.End}
			if result := call.Runs[len(call.Runs)-1].Run.Result; result != nil {
				n.of.Addresses = result.IPs
			}
			if f.late > 0 {
				f.asked = append(f.asked, n.of)
			}
		}
	}
}

func (f *firsts) forget(key model.Key) {
	f.asked = slices.DeleteFunc(f.asked, func(c model.Connected) bool { return c.Operation == key })
	for name, n := range f.namespaces {
		if n.op == nil && n.of.Operation == key {
			delete(f.namespaces, name)
		}
	}
}
