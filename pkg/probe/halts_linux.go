package probe

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// halts reports halted processes, and samples holders of awaited locks. It polls up to polledMax
// that did not just run, because since Linux 6.1 cgroup v1 freezes a thread where it sleeps; parents rarely: children
// have their time.
func (r *reader) halts() {
	r.decoder.LookAtHolders(r.now, agents.HaltOf)
	asked, parents := 0, make(map[event.Process]bool, len(r.table.live))
	for _, known := range r.table.live {
		parents[known.parent] = true
	}
	for process, known := range r.table.live {
		if asked >= polledMax {
			return
		}
		every := int64(dutiesEvery)
		if parents[process] {
			every *= 10
		}
		if known.pid == 0 || !known.halted && r.now-known.looked < every {
			continue
		}
		r.halt(process, known)
		asked++
		known.looked = r.now
	}
}

const polledMax = 10

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
