package probe

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/agents"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// The reader is how agents have the kernel side follow servers.
var _ agents.Follower = (*reader)(nil)

func (r *reader) Tell(b event.Body) { r.sink(event.Event{Time: r.now, Body: b}) }

func (r *reader) Follow(key kernel.Key, depth int) (kernel.Key, bool) {
	entry := kernel.LifeProcess{Self: key, Root: key, Agent: uint8(depth), OnNode: 1, Home: networkOf(key.Pid)}
	// Asked first what it may: the process that is alive then is the one that was asked.
	if depth > 0 && r.MayServe(key.Pid) && agents.Alive(key) {
		entry.Session, entry.Mounts = sessionOf(key.Pid), mountsOf(key.Pid)
		r.probe.kernel.Insert(&entry)
	}
	// Whatever is in there counts: perhaps a process of a plugin's own tree.
	entry, ok := r.probe.kernel.Process(key.Tgid)
	if !ok || entry.Agent == 0 {
		return key, false
	}
	process := kernel.ProcessOf(entry.Self)
	r.table.add(process)
	r.decoder.Serve(process, int(entry.Agent))
	return entry.Self, true
}

// MayServe reports whether what a process does for plugins may be evidence.
func (r *reader) MayServe(pid uint32) bool {
	return r.probe.host.privilegedHere(int(pid))
}

// sessionOf is visible_session of bpf/task.h; 0 if the process is gone.
func sessionOf(pid uint32) uint32 {
	stat, err := procfs.StatOf(int(pid))
	if err != nil {
		return 0
	}
	return uint32(stat.Session)
}

// mountsOf is mounts_of of bpf/task.h; 0, which is nobody's, if it cannot be had: then the
// session decides alone.
func mountsOf(pid uint32) uint32 {
	inode, _ := procfs.Namespace(int(pid), "mnt")
	return inode
}

// Unfollow ends that. What the server started is followed until it is over.
func (r *reader) Unfollow(process event.Process) {
	r.table.remove(process)
	r.decoder.Dismiss(process)
}

func (r *reader) Depth(process event.Process) (int, bool) {
	if !r.table.follows(process) {
		return 0, false
	}
	return r.decoder.Depth(process), true
}
