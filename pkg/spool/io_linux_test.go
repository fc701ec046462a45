package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/disktest"
	"github.com/cniscope/cniscope/test/harness"
)

// life is what a process did with a spool, by calls without an error.
type life struct {
	appended, synced []string
	sent, advanced   map[string]bool
	counted          uint64 // lost, as the spool counted
}

// live writes, exports and syncs like pkg/queue on a failing disk.
func live(o Options, rounds int) life {
	l := life{sent: map[string]bool{}, advanced: map[string]bool{}}
	s, err := Open(o)
	if err != nil {
		return l // its user continues without a spool
	}
	for i := range rounds {
		name := fmt.Sprintf("operation %d %s", i, strings.Repeat("x", 300))
		dropped, err := s.Append(named(name))
		l.counted += dropped.Full + dropped.Old
		if err == nil {
			l.appended = append(l.appended, name)
		}
		if i%3 == 1 {
			if got, err := s.Peek(1, 1); err == nil && len(got) == 1 {
				l.sent[string(got[0].Data)] = true
				l.counted += got[0].Damaged
				l.advanced[string(got[0].Data)] = s.Advance(got[0].Next) == nil
			}
			dropped := s.Return() // those of a failed Peek
			l.counted += dropped.Full + dropped.Old
		}
		if i%5 == 4 {
			until := len(l.appended)
			if s.Sync() == nil {
				l.synced = l.appended[:until]
			}
			dropped := s.Trim()
			l.counted += dropped.Full + dropped.Old
		}
	}
	if s.Close() == nil {
		l.synced = l.appended
	}
	return l
}

// missing returns operations that are neither sent nor in the spool.
func (l life) missing(t *testing.T, o Options, of []string) (lost []string) {
	t.Helper()
	o.Disk = disktest.Sound()
	s, err := Open(o)
	if err != nil {
		t.Fatalf("the next Open: %v", err)
	}
	defer s.Close()
	waits := map[string]bool{}
	names, _ := waiting(t, s)
	for _, name := range names {
		if waits[name] {
			t.Errorf("%.14s waits twice", name)
		}
		waits[name] = true
	}
	for _, name := range of {
		if !l.sent[name] && !waits[name] {
			lost = append(lost, name)
		}
	}
	if _, err := s.Append(named("the next one")); err != nil {
		t.Errorf("the next Append: %v", err)
	}
	return lost
}

// spools are one without removals, and one with eight segments of three operations.
func spools(dir string) map[string]Options {
	return map[string]Options{
		"large": {Dir: dir, MaxBytes: 1 << 30, MaxAge: time.Hour},
		"small": {Dir: dir, MaxBytes: 8 << 10, MaxAge: time.Hour},
	}
}

// rounds is the number of appends; a small spool removes from the 24th on.
const rounds = 32

// began creates a spool with three waiting operations and one sent.
func began(t *testing.T, o Options) (names []string) {
	t.Helper()
	o.Disk = disktest.Sound()
	s := harness.Must(Open(o))(t)
	names = []string{"before 0", "before 1", "before 2", "before 3"}
	appendAll(t, s, noon, names...)
	exportSome(t, s, 1)
	harness.Check(t, s.Close())
	return names[1:]
}

// After any single fault every operation is sent, waiting or counted.
func TestEachCallOfASpoolFailsOnce(t *testing.T) {
	harness.Slow(t)
	for name := range spools("") {
		t.Run(name, func(t *testing.T) {
			disktest.Sweep(t, disktest.Faults(), func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
				o := spools(filepath.Join(disktest.Folder(t), "spool"))[name]
				before := began(t, o)
				d := failing(t, o.Dir, at, fault)
				o.Disk = d
				l := live(o, rounds)
				if lost := l.missing(t, o, append(before, l.appended...)); uint64(len(lost)) > l.counted {
					t.Errorf("%d lost, %d counted: %.30q", len(lost), l.counted, lost)
				}
				if open := descriptors(t, o.Dir); len(open) > 0 {
					t.Errorf("still open: %q", open)
				}
				return d
			})
		})
	}
}

// After a kill at any call, everything that Append accepted is there; after a power failure, everything that Sync
// confirmed. The spool removes nothing.
func TestASpoolLosesPowerAtEachCall(t *testing.T) {
	faults := []disktest.Fault{disktest.Killed, disktest.Forever}
	disktest.Sweep(t, faults, func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
		o := spools(filepath.Join(disktest.Folder(t), "spool"))["large"]
		before := began(t, o)
		d := failing(t, o.Dir, at, fault)
		o.Disk = d
		l := live(o, rounds)
		disktest.PowerCuts(t, d, func(folder, how string) {
			o := o
			o.Dir = folder
			if lost := l.missing(t, o, append(before, l.synced...)); len(lost) > 0 {
				t.Errorf("%s: lost %.30q of what was synced", how, lost)
			}
		})
		if lost := l.missing(t, o, append(before, l.appended...)); len(lost) > 0 {
			t.Errorf("lost %.30q of what was appended", lost)
		}
		return d
	})
}

// If reads fail during Open, nothing is cut, and new records follow the old ones.
func TestASpoolThatCannotBeReadIsLeft(t *testing.T) {
	disktest.Sweep(t, []disktest.Fault{disktest.Unreadable},
		func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
			o := spools(filepath.Join(disktest.Folder(t), "spool"))["large"]
			l, want := life{}, began(t, o)
			d := failing(t, o.Dir, at, fault)
			o.Disk = d
			if s, err := Open(o); err == nil {
				if _, err := s.Append(named("appended")); err != nil {
					t.Error(err)
				}
				_ = s.Close()
				want = append(want, "appended")
			}
			if lost := l.missing(t, o, want); len(lost) > 0 {
				t.Errorf("lost %q", lost)
			}
			return d
		})
}

func failing(t *testing.T, folder string, at int, fault disktest.Fault) *disktest.Disk {
	t.Helper()
	return harness.Must(disktest.New(folder, at, fault))(t)
}

// descriptors lists the open files below a directory.
func descriptors(t *testing.T, dir string) (open []string) {
	t.Helper()
	all := harness.Must(os.ReadDir("/proc/self/fd"))(t)
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			open = append(open, to)
		}
	}
	return open
}
