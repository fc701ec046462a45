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
// ago, as since Linux 6.1 cgroup v1 freezes a thread where it sleeps, and parents rarely.
func (r *reader) halts() {
	r.decoder.LookAtHolders(r.now, agents.HaltOf)
	for _, known := range r.table.live {
		if up := r.table.live[known.parent]; up != nil {
			up.parentAt = r.now
		}
	}
	due := make([]silent, 0, polledMax+1)
	for process, known := range r.table.live {
		every := int64(dutiesEvery)
		if known.parentAt == r.now {
			every *= 10
		}
		if known.pid == 0 || !known.halted && r.now-known.looked < every {
			continue
		}
		at, _ := slices.BinarySearchFunc(due, known.looked, silent.compare)
		due = slices.Insert(due, at, silent{process, known})
		due = due[:min(len(due), polledMax)]
	}
	for _, s := range due {
		r.halt(s.process, s.tracked)
		s.looked = r.now
	}
}

type silent struct {
	process event.Process
	*tracked
}

func (s silent) compare(looked int64) int { return cmp.Compare(s.looked, looked) }

const polledMax = 5

func (r *reader) halt(process event.Process, known *tracked) {
	first := procfs.FirstThread(int(known.pid))
	if !(procfs.Stat{Start: first.Start}).BeganAt(int64(kernel.KeyOf(process, known.pid).Start)) {
		return
	}
	known.there = r.now
	state, by := agents.HaltIn(int(known.pid), first)
	if state == "" && !known.halted {
		return
	}
	known.halted = state != ""
	if !known.halted {
		state = event.AgentRunning
	}
	r.Tell(&event.Agent{Process: process, PID: known.pid, State: state, By: by, Since: known.looked})
}
