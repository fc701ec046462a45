package probe

import (
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// The reader is how agents have the kernel side follow servers.
var _ follower = (*reader)(nil)

func (r *reader) tell(b event.Body) { r.sink(event.Event{Time: r.now, Body: b}) }

func (r *reader) follow(key taskKey, depth int) (taskKey, bool) {
	entry := bpfProcess{Self: key, Root: key, Agent: uint8(depth), OnNode: 1, Home: networkOf(key.Pid)}
	// Asked first what it may: the process that is alive then is the one that was asked.
	if depth > 0 && r.mayServe(key.Pid) && alive(key) {
		entry.Session, entry.Mounts = sessionOf(key.Pid), mountsOf(key.Pid)
		r.probe.watch(key.Tgid)
		if r.probe.objects.Processes.Update(key.Tgid, &entry, 1 /* BPF_NOEXIST */) == nil {
			r.probe.join(key)
		}
	}
	// Whatever is in there counts: perhaps a process of a plugin's own tree.
	if r.probe.objects.Processes.Lookup(key.Tgid, &entry) != nil || entry.Agent == 0 {
		return key, false
	}
	process := processKey(entry.Self)
	r.table.add(process)
	r.decoder.inside.serve(process, int(entry.Agent))
	return entry.Self, true
}

// mayServe tells whether what a process does for plugins may be evidence.
func (r *reader) mayServe(pid uint32) bool {
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

// unfollow ends that. What the server started is followed until it is over.
func (r *reader) unfollow(process event.Process) {
	r.table.remove(process)
	r.decoder.inside.remove(process)
}

func (r *reader) depthOf(process event.Process) (int, bool) {
	if !r.table.follows(process) {
		return 0, false
	}
	return r.decoder.inside.depthOf(process), true
}

// serve notes that a process is a server.
func (in *interior) serve(process event.Process, depth int) {
	p := in.processes[process]
	if p == nil {
		p = in.add(process, "")
	}
	p.depth = depth
}

func (in *interior) depthOf(process event.Process) int {
	if p := in.processes[process]; p != nil {
		return p.depth
	}
	return 0
}
