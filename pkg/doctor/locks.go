package doctor

import (
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// nobodyWaitsForALock: on the locks that CNI plugins take, nobody waits for a holder that
// does not let go.
func nobodyWaitsForALock(f *fact.Facts) ([]Finding, error) {
	if f.Locks.Err != nil {
		return nil, f.Locks.Err
	}
	var found []Finding
	for _, l := range f.Locks.Value {
		if len(l.Waiters) == 0 {
			continue
		}
		found = append(found, Finding{
			Level: Warning, Summary: fact.Sayf("%s is held by %s, and others wait for it", l.File, l.Holder),
			Evidence: []string{
				fact.Sayf("/proc/locks: the same holder and waiters for %s at least", l.Since.Round(time.Millisecond).String()),
				"waiting: " + fact.List(l.Waiters),
			},
			Remedy: []string{fact.Sayf("see what the holder does: cat /proc/%d/wchan /proc/%d/stack", l.PID, l.PID)},
		})
	}
	return found, nil
}
