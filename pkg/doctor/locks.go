package doctor

import "time"

// nobodyWaitsForALock: on the locks that CNI plugins take, nobody waits for a holder that
// does not let go.
func nobodyWaitsForALock(f *Facts) ([]Finding, error) {
	if f.Locks.Err != nil {
		return nil, f.Locks.Err
	}
	var found []Finding
	for _, l := range f.Locks.Value {
		if len(l.Waiters) == 0 {
			continue
		}
		found = append(found, Finding{
			Level: Warning, Summary: sayf("%s is held by %s, and others wait for it", l.File, l.Holder),
			Evidence: []string{
				sayf("/proc/locks: the same holder and waiters for %s at least", l.Since.Round(time.Millisecond).String()),
				"waiting: " + list(l.Waiters),
			},
			Remedy: []string{sayf("see what the holder does: cat /proc/%d/wchan /proc/%d/stack", l.PID, l.PID)},
		})
	}
	return found, nil
}
