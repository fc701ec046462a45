package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func large(dir string) Options {
	return Options{Dir: dir, MaxBytes: 1 << 30, MaxAge: 24 * time.Hour}
}

func mustOpen(t testing.TB, o Options) *Spool {
	t.Helper()
	s := harness.Must(Open(o))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func named(text string) Operation {
	return Operation{Start: noon.Add(-time.Second), End: noon, Data: []byte(text)}
}

func numbers(from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("operation %d%s", i, strings.Repeat(".", i%7)))
	}
	return names
}

// at sets the spool's clock, which started at noon.
func at(s *Spool, now time.Time) *Spool {
	s.now = func() time.Duration { return now.Sub(noon) }
	return s
}

func appendAll(t testing.TB, s *Spool, now time.Time, names ...string) (all Dropped) {
	t.Helper()
	at(s, now)
	for _, name := range names {
		d := harness.Must(s.Append(named(name)))(t)
		all.Full += d.Full
		all.Old += d.Old
	}
	return all
}

func waiting(t testing.TB, s *Spool) (names []string, damaged uint64) {
	t.Helper()
	records := harness.Must(s.Peek(1<<20, 1<<30))(t)
	s.Return()
	for _, r := range records {
		names = append(names, string(r.Data))
		damaged += r.Damaged
	}
	return names, damaged
}

// waits checks what waits, undamaged.
func waits(t testing.TB, what string, s *Spool, want ...string) {
	t.Helper()
	got, damaged := waiting(t, s)
	same(t, what, got, want)
	harness.Equal(t, damaged, 0, "damaged")
}

func exportSome(t testing.TB, s *Spool, n int) (names []string) {
	t.Helper()
	for range n {
		records, err := s.Peek(1, 1)
		if err != nil || len(records) != 1 {
			t.Fatalf("%d records, %v", len(records), err)
		}
		names = append(names, string(records[0].Data))
		harness.Check(t, s.Advance(records[0].Next))
	}
	return names
}

func readAll(t testing.TB, dir string, since time.Time) (names []string, errs []error) {
	t.Helper()
	for op, err := range Read(dir, since) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		names = append(names, string(op.Data))
	}
	return names, errs
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %d, want %d:\n%q\n%q", what, len(got), len(want), got, want)
	}
}

func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	return harness.Must(filepath.Glob(filepath.Join(dir, "*.segment")))(t)
}

func copyDir(t testing.TB, from string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "copy")
	harness.Check(t, errors.Join(os.Mkdir(to, 0o700), os.CopyFS(to, os.DirFS(from))))
	return to
}

func kilobyte(i int) string { return fmt.Sprintf("%04d%s", i, strings.Repeat("x", 1020)) }
