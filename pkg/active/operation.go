// Package active holds open operations and their processes. It turns events into facts of images.
package active

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// Operation is an open model.Operation.
type Operation struct {
	*model.Operation
	Began event.Caller
	// NRI's reports may have been lost.
	Unheard bool
	// When a report that ends it came, and the reason.
	Commit int64
	Ending model.Closed
	// Deadline of the wait for its calls' parents; 0 while it runs.
	Until      int64
	Aboves     []*event.Above
	Namespaces int
	works      []*work

	limits        Limits
	images, facts int
	names         naming
	suspects      []*suspect // others may have waited for these
	accused       []accused  // its own runs waited for these
}

// Limits bound one operation.
type Limits struct{ Images, Facts int }

// New returns a started operation on a node with these interfaces.
func New(op *model.Operation, began event.Caller, limits Limits, node *Interfaces) *Operation {
	return &Operation{Operation: op, Began: began, limits: limits, names: naming{node, NewInterfaces(ownMax)}}
}

// Behind returns a stand-in for a closed operation, with room for images of later work.
func (op *Operation) Behind(images int) *Operation {
	behind := &model.Operation{Kind: op.Kind, ContainerID: op.ContainerID}
	return New(behind, op.Began, Limits{Images: images}, op.names.node)
}

// Below returns a process that certainly works for a run. by is its agent, if its callers are invisible.
func (op *Operation) Below(call *model.Call, run *model.Image, by *event.Actor) *Process {
	cl := &claim{by: by, Attribution: model.Attribution{Evidence: model.Certain}}
	return &Process{Op: op, Call: call, Run: run, up: run, claim: cl}
}

// Lacks adds a reason why the operation may be incomplete.
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

// Room counts one more image, if there is room.
func (op *Operation) Room() bool {
	if op.images >= op.limits.Images {
		op.Dropped++
		op.Lacks("more programs than the limit")
		return false
	}
	op.images++
	return true
}

// Identify sets the pod, unless it is known.
func (op *Operation) Identify(pod event.Pod) {
	if op.Pod == (event.Pod{}) {
		op.Pod = pod
	}
}

// callOf returns the call of a run, or nil for a delegated plugin.
func (op *Operation) callOf(run *model.Image) *model.Call {
	for _, call := range op.Calls {
		if slices.Contains(call.Runs, run) {
			return call
		}
	}
	return nil
}

// Vouched reports whether the runtime, or an agent of a call, began it. Others get no parents from the runtime, and do
// not precede its operations.
func (op *Operation) Vouched() bool {
	return op.Began.Anchored() || op.Began == event.CallerAgent
}

// Resolve completes interfaces, detections and lock holders. told means that a call's parent may come after its end.
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
	for _, w := range op.works {
		one(w.Own)
		one(w.Shared)
	}
	for _, a := range op.accused {
		a.wait.Blame = a.known(told)
	}
	op.acquit()
}

// lockFilesMax bounds a call's lock files. A plugin waits for one.
const lockFilesMax = 8

// LockFile stores a lock file on the calls that polled for it.
func (op *Operation) LockFile(l *event.LockFile) {
	for _, call := range op.Calls {
		polled := func(im *model.Image) {
			for _, m := range model.Each[*model.Missing](im.Facts) {
				if m.Path != l.Path || m.Error != "EEXIST" || len(call.LockFiles) >= lockFilesMax {
					continue
				}
				if call.LockFiles == nil {
					call.LockFiles = map[string]*event.LockFile{}
				}
				call.LockFiles[l.Path] = l
			}
		}
		for _, run := range call.Runs {
			run.Walk(polled)
		}
	}
}
