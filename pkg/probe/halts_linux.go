package probe

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// halts tells which processes of plugins are stopped or frozen, and looks at those who have a lock that is waited for.
// What agents do is sampled by agents.Tend. The scheduler does not tell it: since Linux 6.1 the freezer of cgroup v1
// leaves a thread where it sleeps. A process is looked at from the second time on, when it has lasted for dutiesEvery;
// of more than askedMax some wait for the next time.
func (r *reader) halts() {
	r.decoder.LookAtHolders(r.now, agents.HaltOf)
	asked := 0
	for process, known := range r.table.live {
		if asked >= askedMax {
			return
		}
		if known.pid == 0 {
			continue
		}
		if known.looked != 0 {
			r.halt(process, known)
			asked++
		}
		known.looked = r.now
	}
}

// halt tells of a process that is stopped or frozen, and of one that goes on.
func (r *reader) halt(process event.Process, known *tracked) {
	state, by := agents.HaltOf(int(known.pid))
	if state == "" && !known.halted {
		return
	}
	if key := kernel.KeyOf(process, known.pid); !procfs.Exists(int(known.pid), int64(key.Start)) { // its end is told
		return
	}
	known.halted = state != ""
	if !known.halted {
		state = event.AgentRunning
	}
	r.Tell(&event.Agent{Process: process, PID: known.pid, State: state, By: by, Since: known.looked})
}
