package spool

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"
	"time"
)

func TestReadGivesWhatEndedSince(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, large(dir))
	for i, end := range []time.Duration{-3 * time.Hour, -time.Hour, -2 * time.Hour, 0} {
		at := noon.Add(end)
		if _, err := s.Append(Operation{Start: at.Add(-time.Minute), End: at, Data: []byte(numbers(0, 4)[i])}); err != nil {
			t.Fatal(err)
		}
	}
	all := numbers(0, 4)
	for since, want := range map[time.Duration][]string{
		4 * time.Hour:    all,
		2 * time.Hour:    all[1:],
		90 * time.Minute: {all[1], all[3]},
		-time.Second:     nil,
	} {
		got, errs := readAll(t, dir, noon.Add(-since))
		same(t, since.String(), got, want)
		if errs != nil {
			t.Error(errs)
		}
	}
	for op, err := range Read(dir, time.Time{}) { // stopping early is allowed
		if err != nil || string(op.Data) != all[0] {
			t.Errorf("%q, %v", op.Data, err)
		}
		break
	}
}

func TestReadOfNothing(t *testing.T) {
	_, errs := readAll(t, filepath.Join(t.TempDir(), "none"), time.Time{})
	if len(errs) != 1 || !errors.Is(errs[0], fs.ErrNotExist) {
		t.Errorf("%v", errs)
	}
	if names, errs := readAll(t, t.TempDir(), time.Time{}); names != nil || errs != nil {
		t.Errorf("%q, %v", names, errs)
	}
}

// Readers take no lock, and see complete records in order.
func TestReadWhileItIsWritten(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, Options{Dir: dir, MaxBytes: 256 << 10, MaxAge: time.Hour})
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Append(named(kilobyte(i))); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 50 {
		names, errs := readAll(t, dir, time.Time{})
		if errs != nil {
			t.Fatal(errs)
		}
		for i := 1; i < len(names); i++ {
			if names[i] <= names[i-1] && names[i] > "0000" && len(names[i-1]) == len(names[i]) {
				t.Fatalf("%.4s after %.4s", names[i], names[i-1])
			}
		}
	}
	close(stop)
	<-done
}
