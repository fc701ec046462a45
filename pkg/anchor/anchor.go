// Package anchor holds the container runtime's processes: those that serve its NRI or CRI socket, and those of
// probe.callers. The probe trusts their calls (docs/trust.md).
package anchor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Anchor is a runtime's process, identified by PID and Start.
type Anchor struct {
	// PID is in cniscope's PID namespace.
	PID int `json:"pid"`
	// Start is the fork, ns since boot in steps of 10 ms (/proc/PID/stat).
	Start int64  `json:"start"`
	Name  string `json:"name,omitempty"`
	// How is the evidence: "serves /run/containerd/containerd.sock".
	How      string `json:"how"`
	Rootless bool   `json:"rootless,omitempty"`
}

func (a Anchor) String() string {
	return fmt.Sprintf("%s (pid %d, %s)", a.Name, a.PID, a.How)
}

// ErrStranger means that no possible runtime serves an address.
var ErrStranger = errors.New("it is not taken for the container runtime's")

// Set holds a node's anchors, safe for concurrent use. Exited ones stay until replaced by the same evidence, so that
// a restarting runtime counts as known.
type Set struct {
	mu       sync.Mutex
	known    map[string][]Anchor // by Anchor.How
	watchers map[int]func([]Anchor)
	next     int
}

// New returns an empty set.
func New() *Set {
	return &Set{known: map[string][]Anchor{}, watchers: map[int]func([]Anchor){}}
}

// Serves records that pid serves socket, and returns whether it is an anchor. It ignores PID 1, which called
// listen(2) under socket activation, and 0, an invisible process.
func (s *Set) Serves(socket string, pid int) bool {
	if pid <= 1 {
		return false
	}
	a, ok := lookUp(pid)
	if !ok {
		return false
	}
	a.How = "serves " + socket
	s.put(a.How, []Anchor{a})
	return true
}

// Are replaces the anchors another set delivered.
func (s *Set) Are(anchors []Anchor) { s.put("told", anchors) }

func (s *Set) put(how string, anchors []Anchor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(s.known[how], anchors) {
		return
	}
	before := s.list()
	s.known[how] = anchors
	now := s.list()
	if slices.Equal(now, before) { // known by other evidence
		return
	}
	for _, f := range s.watchers {
		f(now)
	}
}

// List returns anchors by PID, also exited ones.
func (s *Set) List() []Anchor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list()
}

func (s *Set) list() (all []Anchor) {
	for _, anchors := range s.known {
		all = append(all, anchors...)
	}
	slices.SortFunc(all, func(a, b Anchor) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Start, b.Start), cmp.Compare(a.How, b.How))
	})
	return slices.CompactFunc(all, func(a, b Anchor) bool { return a.PID == b.PID && a.Start == b.Start })
}

// Alive reports whether the process still runs.
func (a Anchor) Alive() bool {
	now, ok := lookUp(a.PID)
	return ok && now.Start == a.Start
}

// PIDs returns the running anchors' PIDs.
func (s *Set) PIDs() (pids []int) {
	for _, a := range s.List() {
		if a.Alive() {
			pids = append(pids, a.PID)
		}
	}
	return pids
}

// Watch calls f with the anchors now and after changes, one at a time, until stop. f must not call the set.
func (s *Set) Watch(f func([]Anchor)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.next
	s.next++
	s.watchers[id] = f
	f(s.list())
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, id)
	}
}

const (
	byOption = "probe.callers"
	maxNamed = 32
	// seekEvery delays discovery. A scan lasts 5 µs per process.
	seekEvery = 5 * time.Second
)

// Seek calls Name every few seconds until ctx ends.
func (s *Set) Seek(ctx context.Context, patterns []string, rootless bool) {
	if len(patterns) == 0 {
		return
	}
	tick := time.NewTicker(seekEvery)
	defer tick.Stop()
	for {
		s.Name(patterns, rootless)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
