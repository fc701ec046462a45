package timeline

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// forget is how long a removed sandbox is remembered: its last DEL may still be open.
const forget = time.Minute

type sandboxes struct {
	limit int
	known map[string]*sandbox
}

// sandbox is NRI's latest report on a sandbox.
type sandbox struct {
	*event.Sandbox
	told    int64 // when it was reported
	ran     bool  // a report said that it runs
	since   int64 // the first of those
	removed int64 // when it was removed; 0 if it was not
}

// apply records a report of NRI, and returns whether it says that the sandbox runs.
func (all *sandboxes) apply(now int64, s *event.Sandbox) (runs bool) {
	known := all.known[s.ID]
	switch {
	case known == nil:
		all.makeRoom()
		known = &sandbox{}
		all.known[s.ID] = known
	case len(s.IPs) == 0 && known.Sandbox != nil:
		// Addresses are not repeated once the sandbox stops.
		merged := *s
		merged.IPs = known.IPs
		s = &merged
	}
	known.Sandbox, known.told = s, now
	switch s.Phase {
	case event.SandboxRemoved:
		known.removed = now
	case event.SandboxRunning, event.SandboxPresent:
		if !known.ran {
			known.since = now
		}
		known.ran = true
		return true
	}
	return false
}

// makeRoom forgets the sandbox that was silent longest when there are too many: a
// runtime that was restarted never says that the pods of its former life are gone.
func (all *sandboxes) makeRoom() {
	if len(all.known) < all.limit {
		return
	}
	oldest := ""
	for id, s := range all.known {
		if oldest == "" || s.told < all.known[oldest].told || s.told == all.known[oldest].told && id < oldest {
			oldest = id
		}
	}
	delete(all.known, oldest)
}

func (all *sandboxes) expire(now int64) {
	for id, s := range all.known {
		if s.removed != 0 && now-s.removed > int64(forget) {
			delete(all.known, id)
		}
	}
}
