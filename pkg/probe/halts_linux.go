package probe

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// halts reports halted processes, and samples holders of awaited locks. It polls those that ran or were polled longest
// ago, because since Linux 6.1 cgroup v1 freezes a thread where it sleeps; parents rarely: children have their time.
func (r *reader) halts() {
	r.decoder.LookAtHolders(r.now, agents.HaltOf)
	parents := make(map[event.Process]bool, len(r.table.live))
	for _, known := range r.table.live {
		parents[known.parent] = true
	}
	due := make([]event.Process, 0, len(r.table.live))
	for process, known := range r.table.live {
		every := int64(dutiesEvery)
		if parents[process] {
			every *= 10
		}
		if known.pid != 0 && (known.halted || r.now-known.looked >= every) {
			due = append(due, process)
		}
	}
	slices.SortFunc(due, func(a, b event.Process) int {
		return cmp.Compare(r.table.live[a].looked, r.table.live[b].looked)
	})
	for _, process := range due[:min(len(due), polledMax)] {
		known := r.table.live[process]
		r.halt(process, known)
		known.looked = r.now
	}
}

const polledMax = 5

func (r *reader) halt(process event.Process, known *tracked) {
	state, by := agents.HaltOf(int(known.pid))
	if state == "" && !known.halted {
		return
	}
	if key := kernel.KeyOf(process, known.pid); !procfs.Exists(int(known.pid), int64(key.Start)) {
		return
	}
	known.halted = state != ""
	if !known.halted {
		state = event.AgentRunning
	}
	r.Tell(&event.Agent{Process: process, PID: known.pid, State: state, By: by, Since: known.looked})
}
