package agents

import (
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// memory tells whether a process was killed because memory ran out.
type memory struct {
	group  procfs.MemoryGroup
	before uint64 // how many were killed in the group before it was followed
}

func memoryOf(pid uint32) memory {
	group := procfs.MemoryGroupOf(int(pid))
	return memory{group, group.Killed()}
}

// tellKilled tells that the kernel killed an agent that is followed because memory ran out, if it did: it ended by
// SIGKILL, and its cgroup has since counted one more kill for that reason.
func (a *Agents) tellKilled(x *event.Exit, key kernel.Key, name string, m memory) {
	if x.Signal == unix.SignalName(unix.SIGKILL) && m.group.Killed() > m.before {
		a.kernel.Tell(&event.Agent{Process: x.Process, PID: key.Pid, Name: name, Over: true, Killed: "OOM"})
	}
}
