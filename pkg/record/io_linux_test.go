package record

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/disktest"
	"github.com/cniscope/cniscope/test/harness"
)

// taken records a hundred events, flushes every tenth, and returns the number of flushed ones.
func taken(d *disktest.Disk, path string) (flushed int, err error) {
	w, err := create(d, path, Header{}, false)
	if err != nil {
		return 0, err
	}
	return written(w, 100)
}

func written(w *Writer, events int) (flushed int, err error) {
	for i := range events {
		if err := w.Write(event.Event{Time: int64(i), Body: &event.Tick{}}); err != nil {
			break // final: Close returns it again
		}
		if i%10 == 9 && w.Flush() == nil {
			flushed = i + 1
		}
	}
	return flushed, w.Close()
}

func readable(t *testing.T, path string) int {
	t.Helper()
	r, err := open(t.Context(), disktest.Sound(), path)
	if err != nil {
		return 0
	}
	defer r.Close()
	events, _ := all(r)
	for i, e := range events {
		harness.Equal(t, e.Time, int64(i), "event", i, "is that of time")
	}
	return len(events)
}

func TestEachCallOfARecordingFailsOnce(t *testing.T) {
	for _, name := range []string{"a.rec", "a.rec.gz"} {
		t.Run(name, func(t *testing.T) {
			faults := append(disktest.Faults(), disktest.Killed, disktest.Forever)
			disktest.Sweep(t, faults, func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
				dir := disktest.Folder(t)
				d := harness.Must(disktest.New(dir, at, fault))(t)
				flushed, err := taken(d, filepath.Join(dir, name))
				if n := readable(t, filepath.Join(dir, name)); n < flushed || err == nil && n != 100 {
					t.Errorf("%d of %d flushed can be read: %v", n, flushed, err)
				}
				if err != nil {
					return d
				}
				disktest.PowerCuts(t, d, func(folder, _ string) {
					if n := readable(t, filepath.Join(folder, name)); n != 100 && n != 0 { // its name may be lost
						t.Errorf("%d events after a loss of power", n)
					}
				})
				return d
			})
		})
	}
}

func TestEachCallOfOverwritingFailsOnce(t *testing.T) {
	const old = 7 // events
	for _, name := range []string{"a.rec", "a.rec.gz"} {
		t.Run(name, func(t *testing.T) {
			faults := append(disktest.Faults(), disktest.Killed)
			disktest.Sweep(t, faults, func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
				dir := disktest.Folder(t)
				path := filepath.Join(dir, name)
				before := harness.Must(create(disktest.Sound(), path, Header{}, false))(t)
				if _, err := written(before, old); err != nil {
					t.Fatal(err)
				}
				d := harness.Must(disktest.New(dir, at, fault))(t)
				flushed := old
				w, err := create(d, path, Header{}, true)
				if err == nil {
					flushed, err = written(w, 100)
				}
				if n := readable(t, path); n < flushed || err == nil && n != 100 {
					t.Errorf("%d events can be read, of %d: %v", n, flushed, err)
				}
				if names, _ := os.ReadDir(dir); len(names) != 1 && fault != disktest.Killed {
					t.Errorf("%d files are left: %v", len(names), names)
				}
				if err == nil {
					disktest.PowerCuts(t, d, func(folder, _ string) {
						if n := readable(t, filepath.Join(folder, name)); n != 100 && n != old {
							t.Errorf("%d events after a loss of power", n)
						}
					})
				}
				return d
			})
		})
	}
}

func TestEachCallOfAReaderFailsOnce(t *testing.T) {
	for _, name := range []string{"a.rec", "a.rec.gz"} {
		t.Run(name, func(t *testing.T) {
			dir := disktest.Folder(t)
			path := filepath.Join(dir, name)
			if _, err := taken(disktest.Sound(), path); err != nil {
				t.Fatal(err)
			}
			disktest.Sweep(t, []disktest.Fault{disktest.EIO, disktest.Forever},
				func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
					d := harness.Must(disktest.New("", at, fault))(t)
					r, err := open(t.Context(), d, path)
					if err != nil {
						return d
					}
					events, err := all(r)
					if closing := r.Close(); err == nil && closing == nil && len(events) != 100 {
						t.Errorf("%d events, and no word of it", len(events))
					}
					return d
				})
		})
	}
}
