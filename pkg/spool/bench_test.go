package spool

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
)

// ordinary is the size of a pod's operation with bridge, host-local, ipMasq and portmap: 15 KB.
const ordinary = 15 << 10

func BenchmarkAppend(b *testing.B) {
	s := mustOpen(b, Options{Dir: b.TempDir(), MaxBytes: 256 << 20, MaxAge: time.Hour})
	op := Operation{Start: noon, End: noon, Data: make([]byte, ordinary)}
	b.SetBytes(ordinary)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Append(op); err != nil {
			b.Fatal(err)
		}
	}
}

// One request of maximum size, read and marked as exported.
func BenchmarkPeekAndAdvance(b *testing.B) {
	s := mustOpen(b, Options{Dir: b.TempDir(), MaxBytes: 256 << 20, MaxAge: time.Hour})
	op := Operation{Start: noon, End: noon, Data: make([]byte, ordinary)}
	for range 1000 {
		if _, err := s.Append(op); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		records, err := s.Peek(512, 1<<20)
		if err != nil || len(records) == 0 {
			b.Fatalf("%d, %v", len(records), err)
		}
		harness.Check(b, s.Advance(records[len(records)-1].Next))
		s.cursor.at = Position{}
	}
}

func BenchmarkOpen(b *testing.B) {
	o := Options{Dir: b.TempDir(), MaxBytes: 256 << 20, MaxAge: time.Hour}
	s := mustOpen(b, o)
	op := Operation{Start: noon, End: noon, Data: make([]byte, ordinary)}
	for s.Stats().Bytes < maxSegment-2*ordinary {
		if _, err := s.Append(op); err != nil {
			b.Fatal(err)
		}
	}
	harness.Check(b, s.Close())
	for b.Loop() {
		s, err := Open(o)
		harness.Check(b, err)
		harness.Check(b, s.Close())
	}
}
