package spool

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

func TestWhatIsAppendedWaitsUntilItIsExported(t *testing.T) {
	o := large(filepath.Join(t.TempDir(), "new", "spool"))
	s := mustOpen(t, o)
	all := numbers(0, 30)
	appendAll(t, s, noon, all...)
	waits(t, "waiting", s, all...)
	same(t, "exported", exportSome(t, s, 10), all[:10])
	waits(t, "waiting after that", s, all[10:]...)
	harness.Check(t, s.Advance(Position{Segment: s.cursor.at.Segment, Offset: 1}))
	waits(t, "waiting after an advance to an earlier place", s, all[10:]...)
	if st := s.Stats(); st.Waiting <= 0 || st.Waiting >= st.Bytes || st.Segments != 1 {
		t.Errorf("%+v", st)
	}

	// A restart, regular and by a crash.
	for _, end := range []func() string{
		func() string { return copyDir(t, o.Dir) },
		func() string {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			return o.Dir
		},
	} {
		again := mustOpen(t, large(end()))
		if f := again.Found(); f.Waiting == 0 || f.Cut != 0 || f.CursorLost {
			t.Errorf("%+v", f)
		}
		waits(t, "waiting after a restart", again, all[10:]...)
		same(t, "exported after a restart", exportSome(t, again, 20), all[10:])
		harness.Equal(t, again.Stats().Waiting, 0, "bytes that wait")
		appendAll(t, again, noon, "one more")
		waits(t, "waiting at last", again, "one more")

		// Exported operations are still readable.
		got, errs := readAll(t, again.options.Dir, time.Time{})
		same(t, "read", got, append(all[:30:30], "one more"))
		if errs != nil {
			t.Error(errs)
		}
	}
}

// A segment takes operations of a sixteenth of MaxAge, so old ones go in small steps.
func TestHowLongASegmentGrows(t *testing.T) {
	s := mustOpen(t, large(t.TempDir()))
	for _, step := range []struct {
		at       time.Duration
		segments int
	}{{12 * time.Hour, 1}, {13 * time.Hour, 1}, {13*time.Hour + 30*time.Minute, 1}, {13*time.Hour + 31*time.Minute, 2}, {15 * time.Hour, 2}} {
		appendAll(t, s, noon.Add(step.at), "x")
		harness.Equal(t, s.Stats().Segments, step.segments, "segments at", step.at)
	}
}

func TestAnOperationComesBackAsItWas(t *testing.T) {
	s := mustOpen(t, large(t.TempDir()))
	for _, op := range []Operation{
		{Start: time.Unix(0, 1), End: time.Unix(0, 2), Data: []byte{}},
		{
			Start: time.Unix(1_700_000_000, 123456789), End: time.Unix(1_700_000_001, 1),
			Data: []byte("\xff\xfec\x01 looks like a record"),
		},
		{Start: time.Unix(0, 0), End: time.Unix(0, 1<<62), Data: make([]byte, maxData)},
	} {
		if _, err := s.Append(op); err != nil {
			t.Fatal(err)
		}
		records, err := s.Peek(1, 1)
		if err != nil || len(records) != 1 {
			t.Fatalf("%d, %v", len(records), err)
		}
		got := records[0]
		if !got.Start.Equal(op.Start) || !got.End.Equal(op.End) || string(got.Data) != string(op.Data) {
			t.Errorf("%v to %v, %d bytes", got.Start, got.End, len(got.Data))
		}
		harness.Check(t, s.Advance(got.Next))
	}
	if _, err := s.Append(Operation{Data: make([]byte, maxData+1)}); err == nil {
		t.Error("one that is too large was taken")
	}
}

func TestPeekGivesWhatARequestMayHold(t *testing.T) {
	s := mustOpen(t, large(t.TempDir()))
	appendAll(t, s, noon, "12345", "12345", "12345", "1234567890")
	for _, tt := range []struct{ n, bytes, want int }{
		{10, 100, 4}, {2, 100, 2}, {10, 15, 3}, {10, 14, 2}, {10, 1, 1}, {0, 100, 0},
	} {
		records, err := s.Peek(tt.n, tt.bytes)
		if err != nil || len(records) != tt.want {
			t.Errorf("%d operations or %d bytes: got %d, %v", tt.n, tt.bytes, len(records), err)
		}
	}
}

func TestTheSpoolIsItsOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes, owners and links are tried as Linux has them; of Windows, pkg/private tries who may write to a folder")
	}
	dir := filepath.Join(t.TempDir(), "spool")
	s := mustOpen(t, large(dir))
	appendAll(t, s, noon, "a")
	for path, want := range map[string]os.FileMode{
		dir: 0o700, segmentFiles(t, dir)[0]: 0o600,
		filepath.Join(dir, cursorName): 0o600,
	} {
		info := harness.Must(os.Stat(path))(t)
		harness.Equal(t, info.Mode().Perm(), want, "mode of", path)
	}
	if _, err := Open(large(dir)); err == nil || !strings.Contains(err.Error(), "another cniscope writes to it") {
		t.Errorf("a second one: %v", err)
	}

	open := filepath.Join(t.TempDir(), "open")
	harness.Check(t, errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)))
	if _, err := Open(large(open)); err == nil || !strings.Contains(err.Error(), "may be written to by others") {
		t.Errorf("a folder of everybody's: %v", err)
	}

	theirs := filepath.Join(t.TempDir(), "theirs")
	harness.Check(t, os.Mkdir(theirs, 0o755))
	if os.Chown(theirs, 65534, 65534) == nil { // root only
		for _, dir := range []string{theirs, filepath.Join(theirs, "spool")} {
			if _, err := Open(large(dir)); err == nil || !strings.Contains(err.Error(), "belongs to uid 65534") {
				t.Errorf("somebody else's folder, or one in it: %v", err)
			}
		}
	}

	// Links out of the directory are not followed.
	victim := filepath.Join(t.TempDir(), "victim")
	aimed := filepath.Join(t.TempDir(), "aimed")
	harness.Check(t, errors.Join(os.WriteFile(victim, nil, 0o600), os.Mkdir(aimed, 0o700),
		os.Symlink(victim, filepath.Join(aimed, cursorName))))
	if _, err := Open(large(aimed)); err == nil {
		t.Error("the link was followed")
	}
	if data, _ := os.ReadFile(victim); len(data) > 0 {
		t.Error("the link was written through")
	}
}

func TestWhatIsClosedFails(t *testing.T) {
	s := mustOpen(t, large(t.TempDir()))
	appendAll(t, s, noon, "a", "b")
	records := harness.Must(s.Peek(1, 1))(t)
	harness.Check(t, s.Close())
	if _, err := s.Append(named("c")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if err := s.Advance(records[0].Next); !errors.Is(err, os.ErrClosed) {
		t.Errorf("advance: %v", err)
	}
	if records, err := s.Peek(1, 1); len(records) > 0 || err == nil {
		t.Errorf("peek: %d, %v", len(records), err)
	}
	harness.Equal(t, s.Trim(), (Dropped{}), "trim")
}
