package probe

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/trust"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// namespaceOf returns 0 if it is unknown.
func namespaceOf(pid uint32, kind string) uint32 { return trust.Namespace(pid, kind) }

// sessionOf is visible_session of bpf/task.h.
func sessionOf(pid uint32) uint32 {
	stat, _ := procfs.StatOf(int(pid))
	return uint32(stat.Session)
}

// caller is caller_of in bpf/believe.h by /proc, without agents.
func (p *Probe) caller(pid uint32) kernel.LifeCaller { return callers[p.node.Caller(pid)] }

var callers = func() map[event.Caller]kernel.LifeCaller {
	all := map[event.Caller]kernel.LifeCaller{}
	for c, name := range decode.Callers {
		all[name] = c
	}
	return all
}()
