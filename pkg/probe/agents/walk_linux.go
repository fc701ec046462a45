package agents

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
)

const (
	// burst is how much CPU time a walk may take at once: 5,000 processes take 0.2 s, and 0.5 s on a busy machine
	// (BenchmarkALapOfManyProcesses). Then it takes a share of one CPU, in slices: 10 %. A process gets one slice, so
	// a tenant with many descriptors hides no other process.
	burst = time.Second
	slice = 50 * time.Millisecond
	share = 10
	// recentMax bounds the processes that are looked at first because they held a socket before.
	recentMax = 16
)

// walk finds the processes that hold sockets, in /proc. It goes on where it stopped, looks at likely processes
// first, and runs beside the reader of events, which only asks and collects.
type walk struct {
	// pids lists processes; spent is the CPU time of the calling thread; start runs a function beside the caller.
	// Tests that simulate time replace them.
	pids  func() ([]int, error)
	spent func() time.Duration
	start func(func())

	mu      sync.Mutex
	running bool
	saved   time.Duration  // CPU time that it may still take
	at      int64          // when that was reckoned
	wanted  map[uint64]int // the lap in which an inode was asked for
	found   map[uint64]int // who holds it; 0: no process that was there in a whole lap
	first   []int          // to be looked at next
	recent  []int          // held a socket that was asked for

	// These belong to the running search: the processes of this lap that are still to be looked at, and its number.
	list []int
	lap  int
}

func newWalk() *walk {
	return &walk{
		pids: procfs.All, spent: threadTime, start: func(f func()) { go f() },
		saved: burst, wanted: map[uint64]int{}, found: map[uint64]int{},
	}
}

func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// holder returns the process that holds a socket. Until it is over, ask again later; 0 then: no process was found.
// likely are processes to be looked at first.
func (w *walk) holder(now int64, inode uint64, likely []int) (pid int, over bool) {
	if pid, over = w.collect(inode); over {
		return pid, true
	}
	if w.ask(now, inode, likely) {
		w.start(w.run)
		return w.collect(inode)
	}
	return 0, false
}

func (w *walk) collect(inode uint64) (pid int, over bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if pid, over = w.found[inode]; over {
		delete(w.found, inode)
	}
	return pid, over
}

// ask adds an inode, and reports whether the walk is to be started.
func (w *walk) ask(now int64, inode uint64, likely []int) (begins bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, asked := w.wanted[inode]; !asked {
		if len(w.wanted) >= maxWaits {
			return false
		}
		w.wanted[inode] = w.lap
		w.first = append(append(w.first, w.recent...), likely...)
	}
	if w.at != 0 {
		w.saved = min(burst, w.saved+time.Duration(max(0, now-w.at))/share)
	}
	w.at = now
	begins = !w.running && w.saved >= slice
	w.running = w.running || begins
	return begins
}

// run looks at one process after another, until nothing is wanted or there is no time left.
func (w *walk) run() {
	runtime.LockOSThread() // whose CPU time is measured
	defer runtime.UnlockOSThread()
	for last := w.spent(); ; {
		pid, wanted := w.next()
		if pid > 1 { // the first of all listens for others
			w.look(pid, wanted)
		}
		now := w.spent()
		if w.pause(now - last) {
			return
		}
		last = now
	}
}

// pause takes time off what is saved, and ends the run if nothing is left, or nothing wanted.
func (w *walk) pause(took time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved -= took
	if len(w.wanted) == 0 {
		w.first, w.list = nil, nil // the next one begins with the processes of its time
	}
	w.running = len(w.wanted) > 0 && w.saved > 0
	return !w.running
}

// next returns the process to look at, and for what; 0 between two laps.
func (w *walk) next() (pid int, wanted map[uint64]int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.first) > 0 {
		pid, w.first = w.first[0], w.first[1:]
		return pid, maps.Clone(w.wanted)
	}
	if len(w.list) > 0 {
		pid, w.list = w.list[0], w.list[1:]
		return pid, maps.Clone(w.wanted)
	}
	for inode, since := range w.wanted {
		if since < w.lap { // it was asked for before this lap began
			w.settle(inode, 0)
		}
	}
	w.lap++
	w.mu.Unlock() // on a node with many processes listing them takes milliseconds
	all, _ := w.pids()
	slices.Sort(all)
	w.mu.Lock()
	w.list = all
	return 0, nil
}

// settle answers for an inode. Answers that are not collected are dropped.
func (w *walk) settle(inode uint64, pid int) {
	if len(w.found) >= maxWaits {
		clear(w.found)
	}
	w.found[inode] = pid
	delete(w.wanted, inode)
	if pid != 0 && !slices.Contains(w.recent, pid) {
		w.recent = append(w.recent[max(0, len(w.recent)-recentMax+1):], pid)
	}
}

// look looks at what a process has open, for one slice at most.
func (w *walk) look(pid int, wanted map[uint64]int) {
	began, looked := w.spent(), 0
	_ = procfs.Descriptors(pid, func(_ int, target string) bool {
		if inode := socketIn(target); inode != 0 {
			if _, is := wanted[inode]; is {
				w.mu.Lock()
				w.settle(inode, pid)
				w.mu.Unlock()
			}
		}
		looked++
		return looked%256 != 0 || w.spent()-began < slice
	})
}
