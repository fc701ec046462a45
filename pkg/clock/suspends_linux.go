package clock

import "slices"

// Suspends knows when the node was suspended, as far as it was looked since NewSuspends. Times in /proc are those of
// CLOCK_BOOTTIME, which goes on meanwhile; those of events are of the monotonic clock, which does not. It is not safe
// for concurrent use.
type Suspends struct {
	// read reads both clocks.
	read func() (boot, mono int64)
	all  []suspend
	// looked is when it was looked last, of the monotonic clock.
	looked int64
}

// suspend is what boot time is ahead of the monotonic clock, for boot times from since on.
type suspend struct{ since, ahead int64 }

const (
	// shortest is what a node is suspended for at least, in ns: less is of no consequence.
	shortest = int64(100e6)
	// suspendsMax bounds how many are remembered. The earliest are forgotten: a time from before those that are left
	// comes out too early, by what the node was suspended for between it and the earliest of them, that one included.
	suspendsMax = 64
)

// NewSuspends begins to look.
func NewSuspends() *Suspends {
	return newSuspends(func() (boot, mono int64) { return Boot(), Monotonic() })
}

func newSuspends(read func() (boot, mono int64)) *Suspends {
	s := &Suspends{read: read}
	boot, mono := read()
	s.all, s.looked = []suspend{{ahead: boot - mono}}, mono
	for range 5 { // who loses its CPU between the two readings finds them closer together
		boot, mono = read()
		s.all[0].ahead = max(s.all[0].ahead, boot-mono)
	}
	return s
}

// Look looks whether the node was suspended. Look more often than it is suspended for: what began in between is taken
// to have begun behind it.
func (s *Suspends) Look() {
	boot, mono := s.read()
	if ahead := boot - mono; ahead-s.all[len(s.all)-1].ahead >= shortest {
		s.all = append(s.all, suspend{since: s.looked + ahead, ahead: ahead})
		s.all = s.all[max(0, len(s.all)-suspendsMax):]
	}
	s.looked = mono
}

// Monotonic returns the monotonic clock's time for one of /proc, both in ns.
func (s *Suspends) Monotonic(boot int64) int64 {
	s.Look()
	for _, one := range slices.Backward(s.all) {
		if boot >= one.since {
			return boot - one.ahead
		}
	}
	return boot - s.all[0].ahead
}
