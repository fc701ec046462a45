package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
)

// operation is an Operation that is not closed.
type operation struct {
	*Operation
	options *Options
	// began is who started its first run.
	began event.Caller
	// unheard: what NRI said of it may have been lost.
	unheard bool
	images  int // kept so far
	facts   int // kept so far
	// netns is how many network namespaces it works on; names are its interfaces'.
	netns int
	names naming
	live  int // runs of calls (not delegates) that have not ended
	// commit is when something was said that ends the operation as soon as its runs are over; closed is what.
	commit int64
	closed Closed
	// until is how long it waits for what is above its calls, once it is over; 0 before.
	until    int64
	suspects []*suspect // its runs, as far as others may have waited for them
	// aboves are the runtime's spans of the sandbox, as far as they were told.
	aboves []*event.Above
}

// newOperation returns an operation that has begun. No other place makes one, so none lacks a part.
func newOperation(o *Operation, options *Options, node *interfaces, began event.Caller) *operation {
	return &operation{Operation: o, options: options, names: naming{node, newInterfaces(ownMax)}, began: began}
}

// partial notes why the operation may not be all there was.
func (op *operation) partial(why string) {
	if i, found := slices.BinarySearch(op.Partial, why); !found {
		op.Partial = slices.Insert(op.Partial, i, why)
	}
}

func (op *operation) lose(l *event.Lost) {
	op.Lost += l.Count
	op.partial("lost events: " + l.Reason)
}

// keep counts one more image, and reports whether there is room for it: Options.Images at most.
func (op *operation) keep() bool {
	if op.images >= op.options.Images {
		op.Dropped++
		op.partial("more programs than the limit")
		return false
	}
	op.images++
	return true
}

func (op *operation) identify(pod event.Pod) {
	if op.Pod == (event.Pod{}) {
		op.Pod = pod
	}
}

// callOf returns the call that run is a link of; nil for a delegate.
func (op *operation) callOf(run *Image) *Call {
	for _, call := range op.Calls {
		if slices.Contains(call.Runs, run) {
			return call
		}
	}
	return nil
}

// takes reports whether a run that began at now still belongs to op. What NRI says may come
// before events of the kernel that are older: those are only read then.
func (op *operation) takes(now int64) bool {
	return op.until == 0 && (op.commit == 0 || now < op.commit)
}

// vouched reports whether the runtime stands for an operation: it began it, or an agent did that answered one
// of its calls. Only that hangs under what the runtime tells, and precedes others of the runtime's.
func (op *operation) vouched() bool {
	return op.began.Anchored() || op.began == event.CallerAgent
}

// process is one process that belongs to an open operation, or stands for what an agent does
// for one of its calls.
type process struct {
	op   *operation
	call *Call
	run  *Image // the innermost that it belongs to
	// up is what its images belong under: the image its parent ran when it forked.
	up *Image
	// image is what it runs; nil before its first exec.
	image *Image

	halted *Fact // the *Halt that it is in; nil if it is in none

	nested      int // how many agents are between it and a run
	tries       []try
	answers     []*event.Answer
	connections []*Connection
	// claim is how what an agent's process does belongs here: its next image, or if it stands for the
	// agent's own work the next fact. Nil for processes of a plugin.
	claim *claim
}

func (p *process) child() *process {
	up := p.image
	if up == nil { // p is a subshell
		up = p.up
	}
	return &process{op: p.op, call: p.call, run: p.run, up: up, nested: p.nested}
}

// current is the image that p runs; of a subshell, which runs none, that of who forked it.
func (p *process) current() *Image {
	if p.image != nil {
		return p.image
	}
	return p.up
}

// replace ends the image that p runs. That of a run goes on: a run is its process, whatever that runs.
func (p *process) replace(now int64, used event.Usage) {
	if p.image != nil && p.image != p.run {
		p.image.end(now, used)
		p.image.Replaced = true
	}
}

func (p *process) runs(im *Image, used event.Usage) {
	p.replace(im.Start, used)
	if p.claim != nil {
		im.Attribution, im.By = &p.claim.Attribution, p.claim.by
		p.claim.did(deed{image: im})
		p.claim = nil
	}
	im.Outlived = p.run.Ended // it was forked before that
	p.up.Children = append(p.up.Children, im)
	p.image = im
	if im.Run != nil { // what it starts inherits this one
		p.run, p.up = im, im
	}
}

// exit ends p and, if that led a run, the run.
func (p *process) exit(now int64, e *event.Exit) {
	if e.Unseen {
		p.op.partial("the end of a process was not seen")
	}
	if p.halted != nil { // it was killed
		p.halted.When.End = max(p.halted.When.End, now)
	}
	if p.image != nil {
		p.image.exit(now, e)
	}
	if p.run.Process != e.Process {
		return
	}
	if p.run != p.image {
		p.run.exit(now, e)
	}
	p.run.outlive()
	if call := p.op.callOf(p.run); call != nil {
		p.op.live--
		call.End = max(call.End, now)
		p.op.End = max(p.op.End, now)
	}
}

// room counts one more fact, and reports whether the operation of p has room for it. what is its
// key in Call.Cut if not.
func (p *process) room(what string) bool {
	if p.op.facts < p.op.options.Facts {
		p.op.facts++
		return true
	}
	p.call.cut(what, 1)
	p.op.partial("more " + what + " than the limit")
	return false
}

func (p *process) keep(thread uint32, when Interval, what What) *Fact {
	f, im := &Fact{When: when, Thread: thread, What: what}, p.current()
	im.Facts = append(im.Facts, f)
	if p.claim != nil {
		f.Attribution = &p.claim.Attribution
		if _, open := what.(*Connection); open || p.worth(when) {
			p.claim.did(deed{fact: f})
		}
	}
	return f
}

// worth reports whether something took long enough to be a fact of its own.
func (p *process) worth(when Interval) bool { return when.took() >= int64(p.op.options.MinSpan) }

// cut counts what the source did not keep.
func (p *process) cut(c *event.Cut) {
	what := c.What
	switch what {
	case "bytes": // what is known of a stream that was read in part is still right
	case "requests":
		p.op.partial("more requests of one process than are read")
	default:
		what = "other"
	}
	p.call.cut(what, c.Count)
}

// configuration records what a run read, and result what it wrote, whichever of its processes
// did: the cat of a shell script reads for the plugin.
func (p *process) configuration(c *event.Configuration) {
	if run := p.run.Run; run.Configuration == nil || run.Configuration.Invalid != "" {
		run.Configuration = c
	}
}

func (p *process) result(r *event.Result) { p.run.Run.Result = r }

// plain takes an event that is a fact by itself.
func (p *process) plain(now int64, body event.Body) {
	fact, named := plainFact(body)
	if fact == nil {
		return
	}
	im := p.current()
	when := im.within(fact.When.Start, now)
	im.Tallies[fact.Kind()].add(1, when.took())
	im.latest = systemCall{fact.Thread, when.Start}
	if p.room(named) {
		p.keep(fact.Thread, when, fact.What)
	}
}

func (p *process) enter(e *event.Enter) {
	im := p.current()
	im.Switches++
	if im.Entered.Key == "" && e.NetNS.Key != im.NetNS.Key {
		im.Entered = e.NetNS
	}
}

// wait records a wait for anything but a file lock. holder is the run that held what was waited
// for; nil if that is not known.
func (p *process) wait(now int64, w *event.Wait, holder *suspect) {
	im, kept := p.current(), &Wait{Kind: w.Kind, Name: w.Name, Error: w.Error, Holder: w.Holder, suspect: holder}
	when := im.within(w.Start, w.Until(now))
	long := p.worth(when)
	switch kept.kind() {
	case FactMutex:
		long = true // the source sends only long ones, and they lie within requests
	case FactSleep:
		im.Asleep = p.idle(im.Asleep, when)
		long = when.took() >= Idly*int64(p.op.options.MinSpan)
	case FactPoll:
		im.Polling = p.idle(im.Polling, when)
		long = false
	case FactCall:
		if im.latest == (systemCall{w.Thread, when.Start}) {
			return // a request or setting tells more of this call
		}
	}
	im.Tallies[kept.kind()].add(1, when.took())
	if long && p.room("waits") {
		p.keep(w.Thread, when, kept)
	}
}

func (p *process) idle(to []Interval, i Interval) []Interval {
	if len(to) >= idleMax && to[len(to)-1].End < i.Start {
		p.call.cut("waits", 1)
		return to
	}
	return join(to, i)
}
