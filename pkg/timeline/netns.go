package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// first is how long after its setup a pod's first connection is still waited for.
const first = time.Minute

// namespacesMax is how many namespaces one setup may have made or entered.
const namespacesMax = 4

// Connected is the first connection of a pod whose setup is over already: what it was
// called for.
type Connected struct {
	// Flight is the call that made the pod's network.
	Flight
	// End is when that was over, At when the connection was there: monotonic ns.
	End, At       int64
	Local, Remote string
}

// FirstConnection is that of a pod, while its setup is open.
type FirstConnection struct {
	// At is when it was there, in monotonic ns.
	At            int64
	Local, Remote string
}

// namespace is one that a setup works on.
type namespace struct {
	op *operation // nil once that is over
	// of is what is said then, and until is how long it is waited for.
	of    Connected
	since int64
	until int64
}

func (t *Timeline) enter(e *event.Enter) {
	p := t.of(e.Process)
	if p == nil {
		return
	}
	im := p.current()
	im.Switches++
	if im.Entered.Key == "" && e.NetNS.Key != im.NetNS.Key {
		im.Entered = e.NetNS
	}
	t.inNamespace(p, e.NetNS)
}

// inNamespace learns that a process works on a namespace: that of the pod, if it is not
// the one that the runtime started the plugin in.
func (t *Timeline) inNamespace(p *process, ns event.Namespace) {
	op := p.op
	if ns.Key == "" || op.Kind != Setup || ns.Key == p.run.NetNS.Key || ns.Key == p.call.Runs[0].NetNS.Key || p.run.NetNS.Key == "" {
		return
	}
	known := t.namespaces[ns.Key]
	if known != nil && known.op == op {
		return
	}
	if op.namespaces >= namespacesMax {
		return
	}
	if known == nil {
		t.vacate()
	}
	op.namespaces++
	t.namespaces[ns.Key] = &namespace{op: op, since: t.now}
}

// vacate forgets the namespace that has been there longest if there are too many.
func (t *Timeline) vacate() {
	if len(t.namespaces) < t.options.Operations {
		return
	}
	oldest := ""
	for key, n := range t.namespaces {
		if o := t.namespaces[oldest]; o == nil || n.since < o.since || n.since == o.since && key < oldest {
			oldest = key
		}
	}
	delete(t.namespaces, oldest)
}

func (t *Timeline) firstConnection(now int64, c *event.FirstConnection) {
	n := t.namespaces[c.NetNS.Key]
	if n == nil {
		return // of nobody's pod, or too late
	}
	delete(t.namespaces, c.NetNS.Key)
	if n.op != nil {
		if call := n.op.connects(); call != nil && call.First == nil {
			call.First = &FirstConnection{At: now, Local: c.Local, Remote: c.Remote}
		}
		return
	}
	if now > n.until {
		return
	}
	n.of.At, n.of.Local, n.of.Remote = now, c.Local, c.Remote
	t.connected = append(t.connected, n.of)
}

// connects is the call that gives the pod its network: not that of lo.
func (op *Operation) connects() (found *Call) {
	for _, call := range op.Calls {
		switch {
		case call.Command != "ADD" || call.IfName == "lo":
		case call.IfName == "eth0":
			return call
		case found == nil:
			found = call
		}
	}
	return found
}

// leave keeps what will be said of the first connection in the namespaces of op, which is
// over.
func (t *Timeline) leave(op *operation) {
	if op.namespaces == 0 {
		return
	}
	call := op.connects()
	for key, n := range t.namespaces {
		switch {
		case n.op != op:
		case call == nil || call.First != nil:
			delete(t.namespaces, key)
		default:
			n.op, n.until = nil, call.End+int64(first)
			n.of = Connected{Flight: t.flight(op.Operation, call, call.Runs[0]), End: call.End}
		}
	}
}

// Connected returns the first connections of pods whose setup was over before, each once.
func (t *Timeline) Connected() []Connected {
	c := t.connected
	t.connected = nil
	return c
}

// Forget says that nobody wants to know what comes after op, which is over.
func (t *Timeline) Forget(op *Operation) {
	key := op.Key()
	for name, n := range t.namespaces {
		if n.op == nil && n.of.Operation == key {
			delete(t.namespaces, name)
		}
	}
}

// expire forgets the namespaces in which no connection came in time.
func (t *Timeline) expire(now int64) {
	for key, n := range t.namespaces {
		if n.op == nil && now > n.until {
			delete(t.namespaces, key)
		}
	}
}
