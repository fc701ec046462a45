// Package active holds operations that are not over, and the processes that work for them: it makes what these do and
// wait for facts of their images.
package active

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// Operation is a model.Operation that is not over.
type Operation struct {
	*model.Operation
	// Began is who started its first run.
	Began event.Caller
	// Unheard: what NRI said of it may have been lost.
	Unheard bool
	// Commit is when something was said that ends the operation as soon as its runs are over; Ending is what.
	Commit int64
	Ending model.Closed
	// Until is how long it waits for what is above its calls, once it is over; 0 before.
	Until int64
	// Aboves are the runtime's spans of the sandbox, as far as they were told.
	Aboves []*event.Above
	// Namespaces is how many network namespaces it works on.
	Namespaces int
	// Works are what agents do for it.
	Works []Work

	limits        Limits
	images, facts int // kept so far
	names         naming
	suspects      []*suspect // its runs, as far as others may have waited for them
	accused       []accused  // those that its own runs waited for
}

// Limits are how many images and facts one operation keeps.
type Limits struct{ Images, Facts int }

// New returns an operation that has begun, on a node with these interfaces.
func New(op *model.Operation, began event.Caller, limits Limits, node *Interfaces) *Operation {
	return &Operation{Operation: op, Began: began, limits: limits, names: naming{node, NewInterfaces(ownMax)}}
}

// Behind returns what stands for an operation once that is over, for as many images of work that is done for it then.
func (op *Operation) Behind(images int) *Operation {
	return New(&model.Operation{Kind: op.Kind, ContainerID: op.ContainerID}, op.Began, Limits{Images: images}, op.names.node)
}

// Below returns a process of an agent, whose work is below a run of a call.
func (op *Operation) Below(call *model.Call, run *model.Image, claim Claim) *Process {
	return &Process{Op: op, Call: call, Run: run, up: run, Claim: claim}
}

// Lacks notes why the operation may not be all there was.
func (op *Operation) Lacks(why string) {
	if i, found := slices.BinarySearch(op.Partial, why); !found {
		op.Partial = slices.Insert(op.Partial, i, why)
	}
}

// Lose counts events that never arrived.
func (op *Operation) Lose(l *event.Lost) {
	op.Lost += l.Count
	op.Lacks("lost events: " + l.Reason)
}

// Room counts one more image, and reports whether there is room for it.
func (op *Operation) Room() bool {
	if op.images >= op.limits.Images {
		op.Dropped++
		op.Lacks("more programs than the limit")
		return false
	}
	op.images++
	return true
}

// Identify names the pod, unless that is known.
func (op *Operation) Identify(pod event.Pod) {
	if op.Pod == (event.Pod{}) {
		op.Pod = pod
	}
}

// callOf returns the call that run is a link of; nil for a delegate.
func (op *Operation) callOf(run *model.Image) *model.Call {
	for _, call := range op.Calls {
		if slices.Contains(call.Runs, run) {
			return call
		}
	}
	return nil
}

// Vouched reports whether the runtime stands for an operation: it began it, or an agent did that answered one
// of its calls. Only that hangs under what the runtime tells, and precedes others of the runtime's.
func (op *Operation) Vouched() bool {
	return op.Began.Anchored() || op.Began == event.CallerAgent
}

// Resolve fills in what facts lacked when they were told: the names of interfaces, the ends of detections that a
// process did not see the end of, and which runs held what others waited for. told says that what is above a call may
// be told when that is over.
func (op *Operation) Resolve(told bool) {
	one := func(im *model.Image) {
		for _, f := range im.Facts {
			switch what := f.What.(type) {
			case *model.Request:
				op.names.resolve(what)
			case *model.Detection:
				what.On = op.names.name(what.NetNS, what.Index)
				if tentative(what) {
					f.When.End = max(f.When.End, im.End)
				}
			}
		}
	}
	for _, call := range op.Calls {
		for _, run := range call.Runs {
			run.Walk(one)
		}
	}
	for _, w := range op.Works {
		own, shared := w.Images()
		one(own)
		one(shared)
	}
	for _, a := range op.accused {
		a.wait.Blame = a.known(told)
	}
	op.acquit()
}
