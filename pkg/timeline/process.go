package timeline

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// operation is an Operation that is not closed.
type operation struct {
	*model.Operation
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
	closed model.Closed
	// until is how long it waits for what is above its calls, once it is over; 0 before.
	until    int64
	suspects []*suspect // its runs, as far as others may have waited for them
	accused  []accused  // those that its own runs waited for
	works    []*work    // what agents do for it
	// aboves are the runtime's spans of the sandbox, as far as they were told.
	aboves []*event.Above
}

// newOperation returns an operation that has begun. No other place makes one, so none lacks a part.
func newOperation(o *model.Operation, options *Options, node *interfaces, began event.Caller) *operation {
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
func (op *operation) callOf(run *model.Image) *model.Call {
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
	call *model.Call
	run  *model.Image // the innermost that it belongs to
	// up is what its images belong under: the image its parent ran when it forked.
	up *model.Image
	// image is what it runs; nil before its first exec.
	image *model.Image

	halted *model.Fact // the *Halt that it is in; nil if it is in none

	work        *work // of an agent, that it stands for or does a part of; nil for processes of a plugin
	tries       []try
	answers     []*event.Answer
	connections []*connection
	// claim is how what an agent's process does belongs here: its next image, or if it stands for the
	// agent's own work the next fact. Nil for processes of a plugin.
	claim *claim

	used, ran event.Usage // of the process before its image, and before its run
	latest    systemCall  // of the latest request or setting
}

// nested is how many agents are between p and a run.
func (p *process) nested() int {
	if p.work == nil {
		return 0
	}
	return p.work.depth
}

func (p *process) child() *process {
	up := p.image
	if up == nil { // p is a subshell
		up = p.up
	}
	return &process{op: p.op, call: p.call, run: p.run, up: up, work: p.work}
}

// current is the image that p runs; of a subshell, which runs none, that of who forked it.
func (p *process) current() *model.Image {
	if p.image != nil {
		return p.image
	}
	return p.up
}

// replace ends the image that p runs. That of a run goes on: a run is its process, whatever that runs.
func (p *process) replace(now int64, used event.Usage) {
	if p.image != nil && p.image != p.run {
		ended(p.image, now, p.used, used)
		p.image.Replaced = true
	}
}

func (p *process) runs(im *model.Image, used event.Usage) {
	p.replace(im.Start, used)
	if p.claim != nil {
		im.Attribution, im.By = &p.claim.Attribution, p.claim.by
		p.claim.did(deed{image: im})
		p.claim = nil
	}
	im.Outlived = p.run.Ended // it was forked before that
	p.up.Children = append(p.up.Children, im)
	p.image, p.used = im, used
	if im.Run != nil { // what it starts inherits this one
		p.run, p.up, p.ran = im, im, used
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
		exited(p.image, now, p.used, e)
	}
	if p.run.Process != e.Process {
		return
	}
	if p.run != p.image {
		exited(p.run, now, p.ran, e)
	}
	outlive(p.run)
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
	p.miss(what, 1)
	p.op.partial("more " + what + " than the limit")
	return false
}

// miss counts what there was no room for, or what the source did not keep.
func (p *process) miss(what string, n uint64) {
	if p.call.Cut == nil {
		p.call.Cut = map[string]uint64{}
	}
	p.call.Cut[what] += n
}

// keep makes something a fact of what p runs.
func (p *process) keep(f *model.Fact) *model.Fact {
	im := p.current()
	im.Facts = append(im.Facts, f)
	if p.claim != nil {
		f.Attribution = &p.claim.Attribution
		if _, is := f.What.(*model.Connection); !is && p.worth(f.When) {
			p.claim.did(deed{fact: f})
		}
	}
	return f
}

// worth reports whether something took long enough to be a fact of its own.
func (p *process) worth(when model.Interval) bool { return when.Took() >= int64(p.op.options.MinSpan) }

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
	p.miss(what, c.Count)
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
	fact, named := model.Plain(body)
	if fact == nil {
		return
	}
	im := p.current()
	when := within(im, fact.When.Start, now)
	im.Tallies[fact.Kind()].Add(1, when.Took())
	p.latest, fact.When = systemCall{fact.Thread, when.Start}, when
	if p.room(named) {
		p.keep(fact)
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
	im, kept := p.current(), &model.Wait{Kind: w.Kind, Name: w.Name, Error: w.Error, Holder: w.Holder}
	when := within(im, w.Start, w.Until(now))
	fact, long := &model.Fact{Thread: w.Thread, When: when, What: kept}, p.worth(when)
	switch fact.Kind() {
	case model.FactMutex:
		long = true // the source sends only long ones, and they lie within requests
	case model.FactSleep:
		im.Asleep = p.idle(im.Asleep, when)
		long = when.Took() >= model.Idly*int64(p.op.options.MinSpan)
	case model.FactPoll:
		im.Polling = p.idle(im.Polling, when)
		long = false
	case model.FactCall:
		if p.latest == (systemCall{w.Thread, when.Start}) {
			return // a request or setting tells more of this call
		}
	}
	im.Tallies[fact.Kind()].Add(1, when.Took())
	if long && p.room("waits") {
		p.keep(fact)
		p.accuse(kept, holder)
	}
}

func (p *process) idle(to []model.Interval, i model.Interval) []model.Interval {
	if len(to) >= idleMax && to[len(to)-1].End < i.Start {
		p.miss("waits", 1)
		return to
	}
	return join(to, i)
}
