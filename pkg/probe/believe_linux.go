package probe

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/decode"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/probe/trust"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// namespaceOf is the inode number of the namespace of a kind that a process is in; 0, which is
// nobody's, if that cannot be asked.
func namespaceOf(pid uint32, kind string) uint32 { return trust.Namespace(pid, kind) }

// sessionOf is visible_session of bpf/task.h; 0 if the process is gone.
func sessionOf(pid uint32) uint32 {
	stat, _ := procfs.StatOf(int(pid))
	return uint32(stat.Session)
}

// caller tells why a process that began before the probe is believed, as far as /proc tells. The
// decision is caller_of's in bpf/believe.h: this one finds the calls that were under way when it
// began to be asked, and the tests of belief compare both. Agents are not known then.
func (p *Probe) caller(pid uint32) kernel.LifeCaller { return callers[p.node.Caller(pid)] }

var callers = func() map[event.Caller]kernel.LifeCaller {
	all := map[event.Caller]kernel.LifeCaller{}
	for c, name := range decode.Callers {
		all[name] = c
	}
	return all
}()
