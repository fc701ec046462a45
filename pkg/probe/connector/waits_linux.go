package connector

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// waitsAfter is the minimum age of a reported wait, which is up to waitsEvery too short.
	waitsAfter, waitsEvery = 250 * time.Millisecond, 100 * time.Millisecond
	// locksMax bounds the bytes of /proc/locks: 2,500 locks take 5 ms.
	locksMax  = 128 << 10
	lostLocks = "list of locks too long"
)

type waits struct {
	looked  int64
	open    map[uint32]*openWait // by the waiter's PID
	streams streams
}

type openWait struct {
	event.Wait
	what string // the file as in /proc/locks, or sleptOf
	seen int64
}

type follower interface {
	Running(before int64) []proctracker.Running
	Key(pid uint32) event.Process
	Tell(at int64, pid uint32, body event.Body)
	Lose(at int64, pid uint32, reason string, n uint64)
}

func newWaits() waits { return waits{open: map[uint32]*openWait{}, streams: newStreams()} }

func (w *waits) look(now int64, t follower) {
	if now-w.looked < int64(waitsEvery) {
		return
	}
	w.looked = now
	running := t.Running(now - int64(waitsAfter))
	if len(running)+len(w.open)+len(w.streams.open) == 0 {
		return
	}
	w.streams.look(now, running, t)
	locks, err := procfs.Locks(locksMax)
	cut := errors.Is(err, procfs.ErrCut)
	if err != nil && !cut {
		return
	}
	waiting, holders := waiters(locks)
	ended := map[uint32]bool{} // the exit ends the wait
	for _, p := range running {
		l, waits := waiting[p.PID]
		what := l.File
		if !waits {
			what = sleptOf(p.PID)
		}
		if !waits && cut {
			t.Lose(now, p.PID, lostLocks, 1)
		}
		if what == "" {
			ended[p.PID] = w.open[p.PID] != nil && dead(p.PID)
			continue
		}
		if o := w.open[p.PID]; o == nil || o.what != what {
			w.lapsed(p.PID, now, t)
			o = &openWait{Wait: event.Wait{Process: p.Process, Thread: p.PID, Start: now, Kind: event.WaitSleep, Name: "nanosleep"}, what: what}
			if waits {
				o.Wait = waitOf(now, p, l, holders[p.PID], t)
			}
			w.open[p.PID] = o
		}
		w.open[p.PID].seen = now
	}
	for pid, o := range w.open {
		if o.seen != now && !ended[pid] {
			w.lapsed(pid, now, t)
		}
	}
}

// waiters returns waiters and holders. /proc/locks lists the waiters behind their lock.
func waiters(locks []procfs.Lock) (waiting map[uint32]procfs.Lock, holders map[uint32]int) {
	waiting, holders = map[uint32]procfs.Lock{}, map[uint32]int{}
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
	return waiting, holders
}

// lapsed reports a wait up to its last sighting.
func (w *waits) lapsed(pid uint32, now int64, t follower) {
	if o := w.open[pid]; o != nil {
		o.End = o.seen
		w.over(pid, now, t)
	}
}

func (w *waits) over(pid uint32, then int64, t follower) {
	if o := w.open[pid]; o != nil {
		delete(w.open, pid)
		t.Tell(then, pid, &o.Wait)
	}
}

func dead(pid uint32) bool {
	stat, err := procfs.StatOf(int(pid))
	return procfs.Gone(err) || err == nil && stat.Zombie()
}

// sleptOf identifies a single-threaded process's sleep by its context switches; empty if awake.
func sleptOf(pid uint32) string {
	const sleeps = "hrtimer_nanosleep" // kernel/time/hrtimer.c
	threads, err := procfs.Threads(int(pid), 2)
	if err != nil || len(threads) != 1 || threads[0].Channel != sleeps {
		return ""
	}
	status, err := procfs.StatusOf(int(pid))
	if err != nil {
		return ""
	}
	return fmt.Sprint("sleep ", status.Pauses)
}

func waitOf(now int64, p proctracker.Running, l procfs.Lock, holder int, t follower) event.Wait {
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

// pathOf returns the path of an open file. It queries no file system, which might hang.
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
