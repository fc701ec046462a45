package pods

import (
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// forget is how long a removed sandbox is remembered: its last DEL may still be open.
const forget = time.Minute

// sandboxes are those that NRI reported.
type sandboxes struct {
	limit int
	known map[string]*Sandbox
}

// Sandbox is NRI's latest report on a sandbox.
type Sandbox struct {
	*event.Sandbox
	told    int64 // when it was reported
	Ran     bool  // a report said that it runs
	Since   int64 // the first of those
	removed int64 // when it was removed; 0 if it was not
}

// Reported records a report of NRI, and returns whether it says that the sandbox runs.
func (all *sandboxes) Reported(now int64, s *event.Sandbox) (runs bool) {
	known := all.known[s.ID]
	switch {
	case known == nil:
		all.makeRoom()
		known = &Sandbox{}
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
		if !known.Ran {
			known.Since = now
		}
		known.Ran = true
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

// Sandbox returns the latest report on a sandbox; nil if there is none.
func (all *sandboxes) Sandbox(id string) *Sandbox { return all.known[id] }

// ExpireSandboxes forgets those that were removed a while ago.
func (all *sandboxes) ExpireSandboxes(now int64) {
	for id, s := range all.known {
		if s.removed != 0 && now-s.removed > int64(forget) {
			delete(all.known, id)
		}
	}
}
