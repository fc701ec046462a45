package connector

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/notified"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// waitsAfter is how long a process of a plugin's tree must have run before it is asked what it waits for, and
	// waitsEvery how often then: by so much a wait is told too short.
	waitsAfter, waitsEvery = 250 * time.Millisecond, 100 * time.Millisecond
)

// waits are those for locks on files that /proc/locks tells of.
type waits struct {
	looked int64
	open   map[uint32]*openWait // by the number of who waits
}

type openWait struct {
	event.Wait
	file string // as /proc/locks has it
	seen int64
}

// look finds out who waits for a lock now, and tells of the waits that are over.
func (w *waits) look(now int64, t *notified.Tracker) {
	if now-w.looked < int64(waitsEvery) {
		return
	}
	w.looked = now
	running := t.Running(now - int64(waitsAfter))
	if len(running)+len(w.open) == 0 {
		return
	}
	locks, err := procfs.Locks()
	if err != nil {
		return
	}
	holders := map[uint32]int{} // by who waits: each lock is followed by those who wait for it
	waiting := map[uint32]procfs.Lock{}
	holder := procfs.Lock{}
	for _, l := range locks {
		if !l.Waits {
			holder = l
			continue
		}
		waiting[uint32(l.PID)] = l
		if holder.File == l.File && holder.Kind == l.Kind {
			holders[uint32(l.PID)] = holder.PID
		}
	}
	for _, p := range running {
		l, waits := waiting[p.PID]
		if o := w.open[p.PID]; waits && (o == nil || o.file != l.File) {
			w.over(p.PID, now, t)
			w.open[p.PID] = &openWait{Wait: waitOf(now, p, l, holders[p.PID], t), file: l.File}
		}
		if waits {
			w.open[p.PID].seen = now
		}
	}
	for pid, o := range w.open {
		if o.seen != now {
			w.over(pid, now, t)
		}
	}
}

// over tells of a wait that ended then, if there is one.
func (w *waits) over(pid uint32, then int64, t *notified.Tracker) {
	if o := w.open[pid]; o != nil {
		delete(w.open, pid)
		t.Tell(then, pid, &o.Wait)
	}
}

// waitOf is a wait that is seen for the first time.
func waitOf(now int64, p notified.Running, l procfs.Lock, holder int, t *notified.Tracker) event.Wait {
	name := "fcntl"
	if l.Kind == "FLOCK" {
		name = "flock"
	}
	wait := event.Wait{
		Process: p.Process, Thread: p.PID, Start: now, Kind: event.WaitLock, Name: name,
		Path: p.Known.Path(text.Clean(pathOf(p.PID, l.File), text.Bound)),
	}
	if holder > 0 {
		wait.Holder = &event.Actor{Process: t.Key(uint32(holder)), PID: uint32(holder)}
		if stat, err := procfs.StatOf(holder); err == nil {
			wait.Holder.Name = p.Known.Program(text.Clean(stat.Name, 16))
		}
	}
	return wait
}

// pathOf is the path by which a process has that file open; empty if that is not found. It asks no file system that
// may not answer.
func pathOf(pid uint32, wanted string) (found string) {
	_ = procfs.Descriptors(int(pid), func(fd int, target string) bool {
		var st unix.Statx_t
		link := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
		if strings.HasPrefix(target, "/") && unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st) == nil &&
			fmt.Sprintf("%02x:%02x:%d", st.Dev_major, st.Dev_minor, st.Ino) == wanted {
			found = target
		}
		return found == ""
	})
	return found
}
