// Package timeline joins events into operations: which process belongs to which run, which runs to which
// call, which calls to which sandbox, and when all of it is over. It is a pure state machine. It reads no
// clock; whatever waits for time to pass waits for ticks, so the same events give the same operations.
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

// Apply takes the next event and returns the operations it brought to an end, in order of their start.
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
	case *event.Readiness:
		t.pods.Readiness(e.Time, b, t.node)
	case *event.Runtime:
		t.node.Runtime = *b
	case *event.Degraded:
		if b.Feature == "nri" {
			t.nri = b.Restored
			t.unheard()
		}
	case *event.Clock:
		t.node.Mono, t.node.Wall = e.Time, b.Wall
	case *event.Detail:
		t.detail(b)
	case *event.Agent:
		t.sampled(e.Time, b)
	case *event.Accept, *event.Close, *event.Exchange:
		t.connections.Told(e.Time, b, t.doer)
	case *event.Link:
		t.link(b)
	case *event.FirstConnection:
		t.pods.Established(e.Time, b)
	default:
		t.doing(e.Time, b)
	}
	return nil
}

// sampled takes a sample of an agent, or of a plugin or holder that stands still (Since).
func (t *Timeline) sampled(now int64, b *event.Agent) {
	if b.Since == 0 {
		t.agents.Sample(now, b)
	} else if p := active.Of(t.tree.Get(b.Process)); p != nil {
		p.Halt(now, b)
	}
}

// doing passes on what a process of an open operation did or waited for, or what an agent did for
// one of its calls.
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
		return
	case *event.Connect:
		t.connections.Connect(now, b, p)
		return
	case *event.Request:
		t.pods.Entered(t.now, p, b.NetNS)
	case *event.Setting:
		t.pods.Entered(t.now, p, b.NetNS)
	case *event.Enter:
		t.pods.Entered(t.now, p, b.NetNS)
	}
	p.Did(now, body)
}

// doer finds the process that did something, or stands for the work of the agent that did; nil if it belongs to
// no open operation.
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
			t.losses.later(now, l)
		}
		for _, op := range ops {
			op.Lose(l)
		}
	case !l.OfProcesses(): // it touches names, not times
		t.unheard()
	default: // nobody knows whose it was
		for _, op := range t.open {
			op.Lose(l)
		}
	}
}

// touched lists the open operations that lack what was lost below a root: the run's own,
// which may go on when its first process is over, or those that an agent works for.
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

// sandbox records a report of NRI. When the sandbox runs, its setup is over.
func (t *Timeline) sandbox(now int64, s *event.Sandbox) {
	t.nri = true
	if !t.pods.Reported(now, s) {
		return
	}
	for _, op := range t.open {
		if op.Kind == model.Setup && op.ContainerID == s.ID && op.Commit == 0 {
			op.Commit, op.Ending = now, model.ClosedRunning
		}
	}
}

// unheard records that NRI's reports may have been lost: open operations no longer wait for one.
func (t *Timeline) unheard() {
	for _, op := range t.open {
		op.Unheard = true
	}
}

// above records a span of the runtime's for the operations that it may be above.
func (t *Timeline) above(a *event.Above) []*model.Operation {
	found := false
	for _, op := range t.open {
		if op.ContainerID == a.SandboxID && op.Vouched() && len(op.Aboves) < abovesMax {
			op.Aboves = append(op.Aboves, a)
			found = true
		}
	}
	// Other spans are irrelevant: further ones of a sandbox, or of one without a network of its own.
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

// detail records that system calls are observed from now on, or are not.
func (t *Timeline) detail(d *event.Detail) {
	t.seeing = d.On
	if !d.On {
		return
	}
	for _, call := range t.live() {
		call.Seen = true
	}
}

// noticed is cniconf's debounce plus read time, in ns (pace): a call begun meanwhile began after the change.
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

// tick closes what is over at now: everything before now has been applied.
func (t *Timeline) tick(now int64) []*model.Operation {
	t.losses.forget(now)
	if now-t.swept >= int64(time.Second) {
		t.swept = now
		t.locks.Prune(now)
		t.pods.Expire(now)
	}
	t.pods.ExpireSandboxes(now)
	return t.close(func(op *active.Operation) model.Closed { return t.over(op, now) })
}

// Flush closes whatever is open, at the end of the stream. What had not settled may have gone on.
func (t *Timeline) Flush() []*model.Operation {
	t.options.Wait = 0 // nothing is told any more
	closed := t.close(func(op *active.Operation) model.Closed {
		if why := t.over(op, t.now); why != "" {
			return why
		}
		return model.ClosedFinished
	})
	t.pods.Flush(t.now)
	return closed
}

// Open returns the number of operations that are not closed.
func (t *Timeline) Open() int { return len(t.open) }

// Stats returns what could not be placed so far.
func (t *Timeline) Stats() Stats {
	s := t.stats
	s.AfterDropped = t.pods.Dropped()
	return s
}

// Pods returns what is known of pods beside their operations.
func (t *Timeline) Pods() *pods.Pods { return t.pods }

// live yields the calls that have a run in progress, in order of the start of their operations.
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

// InFlight returns the calls that have a run in progress, in order of their start.
func (t *Timeline) InFlight() (flights []model.Flight) {
	for op, call := range t.live() {
		flights = append(flights, op.Flight(call, call.Live(), t.node.Runtime))
	}
	return flights
}

// Overdue returns the calls in progress for longer than Options.Hung, each once.
func (t *Timeline) Overdue() (flights []model.Flight) {
	for op, call := range t.live() {
		if t.options.Hung > 0 && !call.Hung && t.now-call.Start >= int64(t.options.Hung) {
			call.Hung = true
			flights = append(flights, op.Flight(call, call.Live(), t.node.Runtime))
		}
	}
	return flights
}

// link takes a name that the kernel told a process of an operation, or an agent.
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
