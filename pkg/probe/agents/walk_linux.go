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
	// burst is the initial CPU time: 5,000 processes cost 0.2 s, and 0.5 s on a busy machine
	// (BenchmarkALapOfManyProcesses). Then it gets 10 % of a CPU. Each process gets one slice, so a tenant with many
	// descriptors hides no other process.
	burst     = time.Second
	slice     = 50 * time.Millisecond
	share     = 10
	recentMax = 16
)

// walk finds holders of sockets in /proc, concurrently with the reader. It tries likely processes first.
type walk struct {
	// Tests replace these. spent is the thread's CPU time.
	pids  func() ([]int, error)
	spent func() time.Duration
	start func(func())

	mu      sync.Mutex
	running bool
	saved   time.Duration  // unused CPU time
	at      int64          // when saved was computed
	wanted  map[uint64]int // by inode, the lap in which it was requested
	found   map[uint64]int // by inode, the holder; 0: none in a whole lap
	first   []int
	recent  []int

	// the current lap's remaining PIDs, and its number
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

// holder returns 0 without a holder. Call it again until over.
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
	w.saved = min(burst, w.saved+time.Duration(max(0, now-w.at))/share)
	w.at = now
	begins = !w.running && w.saved >= slice
	w.running = w.running || begins
	return begins
}

func (w *walk) run() {
	runtime.LockOSThread() // for its CPU time
	defer runtime.UnlockOSThread()
	for last := w.spent(); ; {
		pid, wanted := w.next()
		if pid > 1 { // PID 1 listens for others
			w.look(pid, wanted)
		}
		now := w.spent()
		if w.pause(now - last) {
			return
		}
		last = now
	}
}

func (w *walk) pause(took time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.saved -= took
	if len(w.wanted) == 0 {
		w.first, w.list = nil, nil // the next run lists again
	}
	w.running = len(w.wanted) > 0 && w.saved > 0
	return !w.running
}

// next returns 0 between laps.
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
		if since < w.lap { // requested before this lap
			w.settle(inode, 0)
		}
	}
	w.lap++
	w.mu.Unlock() // listing many processes takes milliseconds
	all, _ := w.pids()
	slices.Sort(all)
	w.mu.Lock()
	w.list = all
	return 0, nil
}

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

func (w *walk) look(pid int, wanted map[uint64]int) {
	began, looked := w.spent(), 0
	_ = procfs.Descriptors(pid, func(_ int, target string) bool {
		if inode := procfs.SocketIn(target); inode != 0 {
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
