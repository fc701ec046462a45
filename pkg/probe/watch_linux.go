package probe

import (
	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/functions"
	"github.com/cniscope/cniscope/pkg/probe/trust"
)

const (
	watchEvery  = 2 * dutiesEvery
	watchesMost = 16
)

type watched struct {
	pid         uint32
	mounts      uint32 // of the runtime
	since, last int64
	watch       *functions.Watch
}

func (r *reader) plugs(now int64, b event.Body) {
	switch b := b.(type) {
	case *event.Exec:
		r.unplug(b.Process)
		if b.Call != nil && b.PID != 0 && len(r.plugins) < watchesMost {
			p := &watched{pid: b.PID, since: now}
			if b.Root && b.Caller == event.CallerRuntime {
				p.mounts = trust.Namespace(b.ParentPID, "mnt")
			}
			r.plugins[b.Process] = p
		}
	case *event.Exit:
		r.unplug(b.Process)
	}
}

// lookAtPlugins leaves out other mounts, where a tenant's program may run.
func (r *reader) lookAtPlugins() {
	names := r.agents.Functions
	if names == nil || !names.Free(r.now) || len(r.plugins) == 0 {
		return
	}
	defer names.Spent(clock.Monotonic())
	mounts, _ := r.probe.node.Namespaces()
	for process, p := range r.plugins {
		switch {
		case !r.table.follows(process):
			r.unplug(process)
		case r.now-p.since < int64(functions.WatchAfter) || r.now-p.last < int64(watchEvery):
		case p.last == 0:
			p.last = r.now
			if m := trust.Namespace(p.pid, "mnt"); m != 0 && (m == mounts || m == p.mounts) {
				p.watch = names.Watch(int(p.pid), m)
			}
		case p.watch != nil && p.watch.Looks() < functions.LooksMax:
			p.last = r.now
			p.watch.Look()
			if n := p.watch.Looks(); n&(n-1) == 0 { // it may hang
				r.tellMain(process, p)
			}
		}
	}
}

func (r *reader) unplug(process event.Process) {
	if p := r.plugins[process]; p != nil && p.watch != nil {
		defer r.agents.Functions.Spent(clock.Monotonic())
		r.tellMain(process, p)
		p.watch.Close()
	}
	delete(r.plugins, process)
}

func (r *reader) tellMain(process event.Process, p *watched) {
	if stack := p.watch.Main(); len(stack) > 0 {
		r.Tell(&event.Agent{Process: process, PID: p.pid, Since: p.since, Stack: stack})
	}
}
