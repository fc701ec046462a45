package agents

import (
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// memory is whether a process was killed for want of it.
type memory struct {
	group  procfs.MemoryGroup
	before uint64 // how many were killed in there before it was followed
}

func memoryOf(pid uint32) memory {
	group := procfs.MemoryGroupOf(int(pid))
	return memory{group, group.Killed()}
}

// ended tells why an agent that is followed ended, if the kernel killed it for want of memory: by SIGKILL, while one
// more was killed for that in its cgroup.
func (a *Agents) ended(x *event.Exit, key kernel.Key, name string, m memory) {
	if x.Signal == unix.SignalName(unix.SIGKILL) && m.group.Killed() > m.before {
		a.kernel.Tell(&event.Agent{Process: x.Process, PID: key.Pid, Name: name, Over: true, Killed: "OOM"})
	}
}
