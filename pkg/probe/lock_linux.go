package probe

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/text"
)

// lock is a lock on a file that was taken, given back, or asked for in vain.
func (in *interior) lock(r record) *event.Wait {
	w := &event.Wait{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start),
		Kind: event.WaitLock, Name: in.names[r.Nr], Path: pathOf(r.data),
		Error: errno(r.Ret), Holder: in.holders[r.Thread],
	}
	delete(in.holders, r.Thread)
	if kernel.InsideClass(r.Class) == kernel.InsideClassCLASS_FLOCK {
		w.Released = r.Args[1]&unix.LOCK_UN != 0
	} else {
		w.Released = int16(r.Args[3]) == unix.F_UNLCK
	}
	return w
}

// pathOf joins the names on the way up from a file.
func pathOf(names []byte) string {
	parts := split(names)
	slices.Reverse(parts)
	return text.Clean("/"+strings.Join(parts, "/"), text.Bound)
}

// setting is a write to a file below /proc/sys; nil for any other one below /proc.
func setting(r record) *event.Setting {
	if r.Object > uint64(len(r.data)) {
		return nil
	}
	key, ok := strings.CutPrefix(pathOf(r.data[r.Object:]), "/proc/sys/")
	if !ok {
		return nil
	}
	return &event.Setting{
		Process: r.process, Thread: r.Thread, Start: int64(r.Start),
		Key: key, Value: text.Clean(strings.Join(strings.Fields(string(r.data[:r.Object])), " "), text.Bound),
		Error: errno(r.Ret), NetNS: namespace(r.NetnsCookie, r.NetnsInum),
	}
}

// opened remembers a network namespace that the process has a descriptor of.
func (in *interior) opened(r record) {
	p := in.processes[r.process]
	if p == nil || r.Ret < 0 {
		return
	}
	if p.files == nil || len(p.files) >= maxFiles {
		p.files = map[uint32]uint32{}
	}
	p.files[uint32(r.Ret)] = uint32(r.Object)
	in.sandboxes.Opened(pathOf(r.data), namespace(r.NetnsCookie, r.NetnsInum))
}
