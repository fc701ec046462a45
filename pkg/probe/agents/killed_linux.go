package agents

import (
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

type memory struct {
	group  procfs.MemoryGroup
	before uint64 // kills in the group before it was followed
}

func memoryOf(pid uint32) memory {
	group := procfs.MemoryGroupOf(int(pid))
	return memory{group, group.Killed()}
}

// tellKilled reports an OOM kill of a followed agent: SIGKILL, and one more kill in its cgroup.
func (a *Agents) tellKilled(x *event.Exit, key kernel.Key, name string, m memory) {
	if x.Signal == unix.SignalName(unix.SIGKILL) && m.group.Killed() > m.before {
		a.kernel.Tell(&event.Agent{Process: x.Process, PID: key.Pid, Name: name, Over: true, Killed: "OOM"})
	}
}
