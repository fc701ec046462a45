// Package timeline joins events into operations: processes into runs, runs into calls, calls into a sandbox's
// operations. It is a pure state machine: time comes from ticks, so the same events give the same operations.
package timeline

import (
	"iter"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/active"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pods"
)

// Apply applies an event and returns the finished operations, by start.
func (t *Timeline) Apply(e event.Event) []*model.Operation {
	t.now = max(t.now, e.Time)
	switch b := e.Body.(type) {
	case *event.Exec:
		return t.exec(e.Time, b)
	case *event.Fork:
		t.fork(b)
	case *event.Exit:
		t.exit(e.Time, b)
	case *event.Sandbox:
		t.sandbox(e.Time, b)
	case *event.Step:
		t.pods.Stepped(e.Time, b)
	case *event.Above:
		return t.above(b)
	case *event.Tick:
		return t.tick(e.Time)
	case *event.Lost:
		t.lost(e.Time, b)
	case *event.Networks:
		t.reconfigure(e.Time, b.Networks)
	case *event.Programs:
		t.networks.programs = b
	case *event.LockFile:
		t.lockFile(b)
	case *event.Readiness:
		t.pods.Readiness(e.Time, b, t.node)
	case *event.Degraded:
		return t.degraded(b)
	case *event.Clock, *event.Runtime, *event.Registered:
		t.machine(e.Time, b)
	case *event.Detail:
		t.detail(b)
	case *event.Agent:
		t.sampled(e.Time, b)
	case *event.Accept, *event.Close, *event.Exchange:
		t.connections.Apply(e.Time, b, t.doer)
	case *event.Link:
		t.link(b)
	case *event.FirstConnection, *event.Look:
		t.pods.Contact(e.Time, b)
	default:
		t.doing(e.Time, b)
	}
	return nil
}

const stepped = 10 * time.Millisecond // as clock.Tie's

func (t *Timeline) machine(now int64, body event.Body) {
	switch b := body.(type) {
	case *event.Clock:
		if by := time.Duration(b.Wall - now - (t.node.Wall - t.node.Mono)); by >= stepped || by <= -stepped {
			t.pods.Doubt(now)
		}
		t.node.Mono, t.node.Wall = now, b.Wall
	case *event.Runtime:
		t.node.Runtime = *b
	case *event.Registered:
		t.nri, t.registered = true, b.PID
		t.pods.Registered(b)
	}
}

func (t *Timeline) lockFile(b *event.LockFile) {
	for _, op := range t.open {
		op.LockFile(b)
	}
}

func (t *Timeline) degraded(b *event.Degraded) (closed []*model.Operation) {
	switch {
	case b.Feature == "nri":
		t.nri = b.Restored
		t.unheard()
	case b.Feature == event.Probe && !b.Restored: // exits of processes are not seen
		closed = t.end("in progress when the probe was detached")
		t.follow()
		t.seeing = false
	}
	return closed
}

// sampled applies a sample of an agent, or, with Since, of a halted plugin or lock holder.
func (t *Timeline) sampled(now int64, b *event.Agent) {
	if b.Since == 0 {
		t.agents.Sample(now, b)
	} else if p := active.Of(t.tree.Get(b.Process)); p != nil && len(b.Stack) > 0 {
		p.Current().In = b.Stack
	} else if p != nil {
		p.Halt(now, b)
	}
}

func (t *Timeline) doing(now int64, body event.Body) {
	p := t.doer(body)
	if p == nil && t.agents.Known(body.Doer()) {
		return
	}
	if w, is := body.(*event.Wait); is && w.Kind == event.WaitLock {
		t.locks.Wait(now, w, p)
		if w.Released {
			return
		}
	}
	if p == nil {
		t.stats.Late++
		return
	}
	switch b := body.(type) {
	case *event.Wait:
		if b.Kind != event.WaitLock {
			p.Wait(now, b, t.locks.Holding(b, p))
		}
	case *event.Connect:
		t.connections.Connect(now, b, p)
	case *event.Request:
		t.pods.Entered(t.now, p, b.NetNS)
	case *event.Setting:
		t.pods.Entered(t.now, p, b.NetNS)
	case *event.Enter:
		t.pods.Entered(t.now, p, b.NetNS)
	}
	p.Did(now, body)
}

// doer returns the acting process, or its agent's stand-in; nil outside of open operations.
func (t *Timeline) doer(body event.Body) *active.Process {
	if p := active.Of(t.tree.Get(body.Doer())); p != nil {
		return p
	}
	return t.agents.Doing(body.Doer(), body)
}

func (t *Timeline) lost(now int64, l *event.Lost) {
	switch {
	case l.Process != "":
		ops := t.touched(l.Process)
		if len(ops) == 0 {
			t.pods.Doubt(now)
			t.losses.later(now, l)
		}
		for _, op := range ops {
			op.Lose(l)
		}
	case !l.OfProcesses(): // names are missing, not times
		t.unheard()
	default: // of an unknown process
		t.pods.Doubt(now)
		for _, op := range t.open {
			op.Lose(l)
		}
	}
}

// touched returns open operations with losses below a root: of its run, which may outlive it, or of an agent's calls.
func (t *Timeline) touched(root event.Process) (ops []*active.Operation) {
	if p := active.Of(t.tree.Get(root)); p != nil {
		return []*active.Operation{p.Op}
	}
	if t.agents.Known(root) {
		return t.agents.Called(root)
	}
	for _, op := range t.open {
		for _, call := range op.Calls {
			if slices.ContainsFunc(call.Runs, func(run *model.Image) bool { return run.Process == root }) {
				return []*active.Operation{op}
			}
		}
	}
	return nil
}

// sandbox applies NRI's report: a running sandbox ends its setup.
func (t *Timeline) sandbox(now int64, s *event.Sandbox) {
	t.nri = true
	t.pods.Ends(now, s, t.node)
	if !t.pods.Reported(now, s) {
		return
	}
	for _, op := range t.open {
		if op.Kind == model.Setup && op.ContainerID == s.ID && op.Commit == 0 {
			op.Commit, op.Ending = now, model.ClosedRunning
		}
	}
}

// unheard notes that NRI's reports may have been lost, so open operations no longer wait for them.
func (t *Timeline) unheard() {
	for _, op := range t.open {
		op.Unheard = true
	}
}

func (t *Timeline) above(a *event.Above) []*model.Operation {
	t.pods.Above(a)
	found := false
	for _, op := range t.open {
		if op.ContainerID == a.SandboxID && op.Vouched() && len(op.Aboves) < abovesMax {
			op.Aboves = append(op.Aboves, a)
			found = true
		}
	}
	if p := t.past.orphans.get(a.SandboxID); !found && p != nil && around(a, p.last.Start, p.last.Start) {
		t.stats.Late++
	}
	return t.close(func(op *active.Operation) model.Closed {
		if op.Until == 0 {
			return ""
		}
		return op.Ending
	})
}

func (t *Timeline) detail(d *event.Detail) {
	t.seeing = d.On
	if !d.On {
		return
	}
	for _, call := range t.live() {
		call.Seen = true
	}
}

// noticed is cniconf's debounce plus read time in ns. A call that begins within it began after the change.
const noticed = int64(250 * time.Millisecond)

func (t *Timeline) reconfigure(now int64, all []event.Network) {
	t.networks.known, t.networks.since, t.node.Networks = all, now, all
	t.pods.Folder(now, all)
	for _, call := range t.live() {
		if written := now - noticed; call.Start < written {
			call.Reconfigured = written
		}
	}
}

// tick closes operations and expires state. All events before now have been applied.
func (t *Timeline) tick(now int64) []*model.Operation {
	t.losses.forget(now)
	if now-t.swept >= int64(time.Second) {
		t.swept = now
		t.locks.Prune(now)
		t.pods.Expire(now)
	}
	t.pods.Finish(now, t.awaitsStart)
	return t.close(func(op *active.Operation) model.Closed { return t.over(op, now) })
}

// Flush closes all operations at the end of the stream.
func (t *Timeline) Flush() []*model.Operation {
	t.options.Wait = 0
	return t.end("in progress when cniscope exited")
}

func (t *Timeline) end(why string) []*model.Operation {
	t.cut = why
	closed := t.close(func(op *active.Operation) model.Closed {
		if why := t.over(op, t.now); why != "" {
			return why
		}
		return model.ClosedFinished
	})
	t.pods.Flush(t.now)
	return closed
}

// Open counts the open operations.
func (t *Timeline) Open() int { return len(t.open) }

// Stats returns the counts so far.
func (t *Timeline) Stats() Stats {
	s := t.stats
	s.AfterDropped = t.pods.Dropped()
	return s
}

// Pods returns the pods outside of operations.
func (t *Timeline) Pods() *pods.Pods { return t.pods }

func (t *Timeline) live() iter.Seq2[*active.Operation, *model.Call] {
	return func(yield func(*active.Operation, *model.Call) bool) {
		for _, op := range t.open {
			for _, call := range op.Calls {
				if call.Live() != nil && !yield(op, call) {
					return
				}
			}
		}
	}
}

// InFlight returns the calls with a run in progress, by start.
func (t *Timeline) InFlight() (flights []model.Flight) {
	for op, call := range t.live() {
		flights = append(flights, t.flight(op, call))
	}
	return flights
}

func (t *Timeline) flight(op *active.Operation, call *model.Call) model.Flight {
	f := op.Flight(call, call.Live(), t.node.Runtime)
	f.Polls = call.Live().Polls(t.now)
	return f
}

// Overdue returns, once each, the calls in progress for longer than Options.Hung.
func (t *Timeline) Overdue() (flights []model.Flight) {
	for _, op := range t.open {
		for _, call := range op.Calls {
			if t.options.Hung > 0 && !call.Hung && t.now-call.Start >= int64(t.options.Hung) && call.Live() != nil {
				call.Hung = true
				flights = append(flights, t.flight(op, call))
			}
		}
	}
	return flights
}

func (t *Timeline) link(l *event.Link) {
	switch p := active.Of(t.tree.Get(l.Process)); {
	case p != nil:
		p.Op.Learn(l)
	case t.agents.Known(l.Process):
		t.interfaces.Learn(l)
	default:
		t.stats.Late++
	}
}
