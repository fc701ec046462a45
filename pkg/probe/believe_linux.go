package probe

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
)

// caller is caller_of in bpf/believe.h by /proc, without agents.
func (p *Probe) caller(pid uint32) kernel.LifeCaller { return callers[p.node.Caller(pid)] }

var callers = func() map[event.Caller]kernel.LifeCaller {
	all := map[event.Caller]kernel.LifeCaller{}
	for c, name := range decode.Callers {
		all[name] = c
	}
	return all
}()
