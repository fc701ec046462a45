package clock

import "slices"

// Suspends converts times of /proc (CLOCK_BOOTTIME) to CLOCK_MONOTONIC, without suspensions since NewSuspends. Not
// for concurrent use.
type Suspends struct {
	read   func() (boot, mono int64)
	all    []suspend
	looked int64
}

type suspend struct{ since, ahead int64 }

const (
	// shortest is the shortest suspension that counts, in ns.
	shortest = int64(100e6)
	// suspendsMax bounds the list. Times before the oldest entry come out too early.
	suspendsMax = 64
)

// NewSuspends reads the clocks first.
func NewSuspends() *Suspends {
	return newSuspends(func() (boot, mono int64) { return Boot(), Monotonic() })
}

func newSuspends(read func() (boot, mono int64)) *Suspends {
	s := &Suspends{read: read}
	boot, mono := read()
	s.all, s.looked = []suspend{{ahead: boot - mono}}, mono
	for range 5 { // preemptions reduce the difference
		boot, mono = read()
		s.all[0].ahead = max(s.all[0].ahead, boot-mono)
	}
	return s
}

// Look checks for a suspension. Processes started since the last call count as later, so call often.
func (s *Suspends) Look() {
	boot, mono := s.read()
	if ahead := boot - mono; ahead-s.all[len(s.all)-1].ahead >= shortest {
		s.all = append(s.all, suspend{since: s.looked + ahead, ahead: ahead})
		s.all = s.all[max(0, len(s.all)-suspendsMax):]
	}
	s.looked = mono
}

// Monotonic converts a time of /proc, in ns.
func (s *Suspends) Monotonic(boot int64) int64 {
	s.Look()
	for _, one := range slices.Backward(s.all) {
		if boot >= one.since {
			return boot - one.ahead
		}
	}
	return boot - s.all[0].ahead
}
