package spool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/disk/disktest"
	"github.com/cniscope/cniscope/test/harness"
)

// life is what a process had of a spool: what it was promised, by answers without an error.
type life struct {
	appended, synced []string
	sent, advanced   map[string]bool
	counted          uint64 // lost, by what the spool said
}

// live has a spool written, exported and synced on a disk that may fail, as pkg/queue does it.
func live(o Options, rounds int) life {
	l := life{sent: map[string]bool{}, advanced: map[string]bool{}}
	s, err := Open(o)
	if err != nil {
		return l // its user goes on without one, and says so
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
			dropped := s.Return() // those of a Peek that failed
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

// missing are those of the operations that were neither sent nor wait in the spool.
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

// spools are one that forgets nothing, and one of eight segments of three operations each.
func spools(dir string) map[string]Options {
	return map[string]Options{
		"large": {Dir: dir, MaxBytes: 1 << 30, MaxAge: time.Hour},
		"small": {Dir: dir, MaxBytes: 8 << 10, MaxAge: time.Hour},
	}
}

// rounds is how many operations a sweep appends: a small spool forgets from the 24th on.
const rounds = 32

// began makes a spool that is in use: three operations wait, one was sent.
func began(t *testing.T, o Options) (names []string) {
	t.Helper()
	o.Disk = disktest.Sound()
	s, err := Open(o)
	harness.Check(t, err)
	names = []string{"before 0", "before 1", "before 2", "before 3"}
	appendAll(t, s, noon, names...)
	exportSome(t, s, 1)
	harness.Check(t, s.Close())
	return names[1:]
}

// Whichever call fails, in whatever way, once: what was appended is sent, or waits, or is counted.
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

// Killed at whichever call: what Append returned for is there. Should the power fail at that call: what Sync
// returned for. (A small spool forgets meanwhile, so this is one that does not.)
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

// Whichever read fails while a spool is opened, and all that follow: nothing of it is cut off, and what is appended
// then comes behind it.
func TestASpoolThatCannotBeReadIsLeft(t *testing.T) {
	disktest.Sweep(t, []disktest.Fault{disktest.Unreadable}, func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
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
	d, err := disktest.New(folder, at, fault)
	harness.Check(t, err)
	return d
}

// descriptors are the files below a folder that this process has open.
func descriptors(t *testing.T, dir string) (open []string) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	harness.Check(t, err)
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, dir) {
			open = append(open, to)
		}
	}
	return open
}
