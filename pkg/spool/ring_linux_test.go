package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTheOldestGoWhenItIsFull(t *testing.T) {
	for _, tt := range []struct {
		name     string
		exported int
		unsent   bool
	}{
		{"nothing was exported", 0, true},
		{"some of the oldest segment was exported", 3, true},
		{"all was exported", 100, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := Options{Dir: t.TempDir(), MaxBytes: 64 << 10, MaxAge: time.Hour}
			s := mustOpen(t, o)
			const all = 100
			var dropped Dropped
			first, removed := "", []byte(nil)
			for i := range all {
				if i == 10 {
					first = segmentFiles(t, o.Dir)[0]
					removed = harness.Must(os.ReadFile(first))(t)
				}
				dropped.Full += appendAll(t, s, noon, kilobyte(i)).Full
				if i < tt.exported {
					exportSome(t, s, 1)
				}
				if st := s.Stats(); st.Bytes > o.MaxBytes {
					t.Fatalf("%d: %+v", i, st)
				}
			}
			got, damaged := waiting(t, s)
			if want := all - tt.exported - int(dropped.Full); len(got) != want || damaged > 0 {
				t.Errorf("%d wait, want %d (%+v), %d damaged", len(got), want, dropped, damaged)
			}
			harness.Equal(t, tt.unsent, (dropped.Full > 0), dropped)
			if len(got) > 0 && got[len(got)-1] != kilobyte(all-1) {
				t.Error("the newest is missing")
			}
			// Most of the content stays.
			if st := s.Stats(); st.Bytes < o.MaxBytes*3/4 {
				t.Errorf("%+v", st)
			}
			restarted := copyDir(t, o.Dir)
			harness.Check(t, os.WriteFile(filepath.Join(restarted, filepath.Base(first)), removed, 0o600))
			after, _ := waiting(t, mustOpen(t, large(restarted)))
			same(t, "after a restart, though a removal failed", after, got)
		})
	}
}

func TestTheOldGo(t *testing.T) {
	o := Options{Dir: t.TempDir(), MaxBytes: 1 << 30, MaxAge: 16 * time.Hour}
	s := mustOpen(t, o)
	hour := func(n float64) time.Time { return noon.Add(time.Duration(n * float64(time.Hour))) }
	appendAll(t, s, hour(0), "0h", "0h too")
	appendAll(t, s, hour(0.9), "0.9h")
	appendAll(t, s, hour(2), "2h") // in a second segment
	exportSome(t, s, 1)
	harness.Equal(t, len(segmentFiles(t, o.Dir)), 2, "segments")
	harness.Equal(t, at(s, hour(16.5)).Trim(), (Dropped{}), "too early")
	harness.Equal(t, at(s, hour(17)).Trim(), (Dropped{Old: 2}))
	waits(t, "at 17h", s, "2h")

	// Also without appends.
	harness.Equal(t, at(s, hour(18.1)).Trim(), (Dropped{Old: 1}))
	if st := s.Stats(); st.Bytes != 0 || st.Waiting != 0 || st.Segments != 1 {
		t.Errorf("%+v", st)
	}
	appendAll(t, s, hour(19), "19h")
	waits(t, "at 19h", s, "19h")
}

// A changed clock drops nothing: ages count from Open, by the monotonic clock.
func TestAClockThatIsSetDropsNothing(t *testing.T) {
	for _, step := range []time.Duration{48 * time.Hour, -48 * time.Hour} {
		dir := t.TempDir()
		s := mustOpen(t, Options{Dir: dir, MaxBytes: 1 << 30, MaxAge: 24 * time.Hour})
		if _, err := s.Append(Operation{Start: noon, End: noon, Data: []byte("before")}); err != nil {
			t.Fatal(err)
		}
		harness.Check(t, s.Close())
		for _, file := range segmentFiles(t, dir) {
			harness.Check(t, os.Chtimes(file, time.Time{}, time.Now().Add(-step)))
		}
		s = mustOpen(t, Options{Dir: dir, MaxBytes: 1 << 30, MaxAge: 24 * time.Hour})
		op := Operation{Start: noon, End: noon.Add(step), Data: []byte("after")}
		if d, err := s.Append(op); err != nil || d != (Dropped{}) {
			t.Errorf("a step by %s: %+v, %v", step, d, err)
		}
		harness.Equal(t, at(s, noon.Add(23*time.Hour)).Trim(), (Dropped{}), "23 hours after a step by", step)
		waits(t, fmt.Sprint("after a step by ", step), s, "before", "after")
		harness.Equal(t, at(s, noon.Add(26*time.Hour)).Trim(), (Dropped{Old: 2}), "26 hours after a step by", step)
	}
}

func TestWhatIsOnItsWayWhenItIsForgotten(t *testing.T) {
	s := mustOpen(t, Options{Dir: t.TempDir(), MaxBytes: 16 << 10, MaxAge: time.Hour})
	appendAll(t, s, noon, kilobyte(0))
	records := harness.Must(s.Peek(1, 1))(t)
	for i := 1; i < 50; i++ {
		appendAll(t, s, noon, kilobyte(i))
	}
	before, _ := waiting(t, s)
	if err := s.Advance(records[0].Next); err != nil { // its segment is gone
		t.Fatal(err)
	}
	after, _ := waiting(t, s)
	same(t, "waiting", after, before)
}

func TestSegmentsThatWereRemovedByHand(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, Options{Dir: dir, MaxBytes: 64 << 10, MaxAge: time.Hour})
	for i := range 20 {
		appendAll(t, s, noon, kilobyte(i))
	}
	files := segmentFiles(t, dir)
	harness.Check(t, os.Remove(files[0]))
	got, damaged := waiting(t, s)
	if len(got) < 10 || got[len(got)-1] != kilobyte(19) || damaged != 1 {
		t.Errorf("%d, %d damaged", len(got), damaged)
	}
	exportSome(t, s, len(got))
	harness.Check(t, s.Close())
	for _, file := range files[1:] {
		harness.Check(t, os.Remove(file))
	}
	// The cursor is ahead of all segments; new records must not be before it.
	again := mustOpen(t, large(dir))
	appendAll(t, again, noon, "new")
	waits(t, "waiting", again, "new")
}

func TestAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,mode=700"); err != nil {
		t.Skipf("a full disk cannot be made here: mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	// MaxBytes exceeds the disk; segments have 64 KiB.
	s := mustOpen(t, Options{Dir: dir, MaxBytes: 512 << 10, MaxAge: time.Hour})
	written := 0
	var err error
	for ; written < 1000; written++ {
		if _, err = s.Append(named(kilobyte(written))); err != nil {
			break
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v after %d", err, written)
	}
	got, damaged := waiting(t, s)
	if len(got) != written || damaged > 0 {
		t.Fatalf("%d wait, %d were written, %d damaged", len(got), written, damaged)
	}
	// Waiting operations stay, and the cursor moves.
	exportSome(t, s, written-1)
	again := mustOpen(t, large(copyDir(t, dir)))
	waits(t, "after a restart", again, kilobyte(written-1))

	// Exported operations are removed.
	for i := written; i < 3*written; i++ {
		appendAll(t, s, noon, kilobyte(i))
		exportSome(t, s, 1)
	}
	waits(t, "waiting", s, kilobyte(3*written-1))
}

// Append and Trim do not count removed operations that Peek returned, since they may have arrived.
func TestRemovedOperationsOnTheirWayCountWhenTheyAreReturned(t *testing.T) {
	for name, settle := range map[string]func(*Spool, []Record) Dropped{
		"returned": func(s *Spool, _ []Record) Dropped { return s.Return() },
		"arrived": func(s *Spool, records []Record) Dropped {
			if err := s.Advance(records[len(records)-1].Next); err != nil {
				t.Error(err)
			}
			return s.Return()
		},
	} {
		s := mustOpen(t, Options{Dir: t.TempDir(), MaxBytes: 1 << 30, MaxAge: 16 * time.Hour})
		appendAll(t, s, noon, "a", "b", "c")
		records, err := s.Peek(2, 1<<20)
		if err != nil || len(records) != 2 {
			t.Fatalf("%v, %v", records, err)
		}
		harness.Equal(t, at(s, noon.Add(17*time.Hour)).Trim(), (Dropped{Old: 1}), name)
		want := map[string]Dropped{"returned": {Old: 2}}[name]
		harness.Equal(t, settle(s, records), want, name)
		harness.Equal(t, s.Return(), (Dropped{}), name, "twice")
	}
}
