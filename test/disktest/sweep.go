package disktest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// Faults returns those of a single call.
func Faults() []Fault { return []Fault{EIO, ENOSPC, Short} }

// Whole reports whether IO=whole asks for the complete sweep.
func Whole() bool { return os.Getenv("IO") == "whole" }

// Sweep runs a scenario, which creates its Disk, to count calls, then per call and applicable fault. Above 100
// calls, without IO=whole, it takes every fifth call without effect.
func Sweep(t *testing.T, faults []Fault, scenario func(t *testing.T, at int, fault Fault) *Disk) {
	t.Helper()
	count := scenario(t, 0, None)
	calls, runs := count.Calls(), 0
	for at := range calls {
		if !Whole() && len(calls) > 100 && !changes[count.ops[at]] && at%5 != 0 {
			continue
		}
		for _, fault := range faults {
			if !fault.touches(count.ops[at]) {
				continue
			}
			runs++
			if d := scenario(t, at, fault); !d.Failed() {
				t.Errorf("call %d of %d was never reached", at, len(calls))
			}
			if t.Failed() {
				t.Fatalf("%s: call %d of %d, %s", fault, at, len(calls), calls[at])
			}
		}
	}
	t.Logf("%d calls, %d runs with one fault: %v", len(calls), runs, faults)
}

// Folder returns a temporary directory in /dev/shm if possible: a sweep creates thousands of files.
func Folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "cniscope-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// PowerCuts calls check with disks after a power failure: unsynced changes lost, zeroed, kept, and random.
func PowerCuts(t *testing.T, d *Disk, check func(folder, how string)) {
	t.Helper()
	random := 1
	if Whole() {
		random = 20
	}
	for i := range 3 + random {
		fate, how := func() Fate { return Fate(i) }, "some kept, some lost"
		if i <= int(Zeroed) {
			how = Fate(i).String()
		} else {
			r := rand.New(rand.NewPCG(uint64(i), uint64(len(d.Calls()))))
			fate = func() Fate { return Fate(r.IntN(3)) }
		}
		to := filepath.Join(Folder(t), "disk")
		if err := d.PowerCut(to, fate); err != nil {
			t.Fatal(err)
		}
		check(to, how)
		_ = os.RemoveAll(to)
		if t.Failed() {
			t.Fatalf("after a loss of power, what was not synced: %s", how)
		}
	}
}

func (f Fate) String() string {
	return [...]string{"all kept", "all lost", "only the lengths kept"}[f]
}
