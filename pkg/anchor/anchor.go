// Package anchor knows which processes are the node's container runtime: those that serve its
// NRI or CRI socket, by what the kernel says about the other end of our connection, and those
// that the option probe.callers names. They decide which calls the kernel probe believes, and
// whom the relay answers first (docs/trust.md).
//
// Data flows one way: sources add to a Set, and its users watch it.
package anchor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Anchor is one process of the container runtime. PID and Start together identify it: a later
// process with the same PID is no anchor.
type Anchor struct {
	// PID is its number in our PID namespace.
	PID int `json:"pid"`
	// Start is when it was forked, in ns since boot, in steps of 10 ms as /proc has it.
	Start int64 `json:"start"`
	// Name is its program, as the kernel calls it (at most 15 bytes).
	Name string `json:"name,omitempty"`
	// How says how it became known: "serves /run/containerd/containerd.sock".
	How string `json:"how"`
	// Rootless: it is in a user namespace of its own, and the operator allowed that.
	Rootless bool `json:"rootless,omitempty"`
}

// String describes the process for people.
func (a Anchor) String() string {
	return fmt.Sprintf("%s (pid %d, %s)", a.Name, a.PID, a.How)
}

// ErrStranger is the error for an address that another serves than the node's container runtime could be.
var ErrStranger = errors.New("it is not taken for the container runtime's")

// Set is the anchors of a node. Make it with New; it is safe for concurrent use.
//
// An anchor that has ended stays until another process becomes known in the same way. No other
// process can pass for it, and a node whose runtime is restarting is not one without a runtime.
type Set struct {
	mu       sync.Mutex
	known    map[string][]Anchor // by how they are known
	watchers map[int]func([]Anchor)
	next     int
}

// New makes an empty set.
func New() *Set {
	return &Set{known: map[string][]Anchor{}, watchers: map[int]func([]Anchor){}}
}

// Serves notes that pid serves socket, in place of the process that did before, and reports
// whether pid is an anchor now. It ignores PID 1, which the kernel names under socket activation
// because it called listen(2), and 0, a process that we cannot see.
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

// Are takes over the anchors of another set.
func (s *Set) Are(anchors []Anchor) { s.put("told", anchors) }

// put replaces the anchors that are known in one way, and calls the watchers if that changes the list.
func (s *Set) put(how string, anchors []Anchor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Equal(s.known[how], anchors) {
		return
	}
	before := s.list()
	s.known[how] = anchors
	now := s.list()
	if slices.Equal(now, before) { // it was known in another way already
		return
	}
	for _, f := range s.watchers {
		f(now)
	}
}

// List returns the anchors in order of their PIDs, each once, even if it is known in two ways.
// Some may have ended already.
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

// Has reports whether the process that has this PID now is an anchor.
func (s *Set) Has(pid int) bool {
	return slices.ContainsFunc(s.List(), func(a Anchor) bool { return a.PID == pid && a.Alive() })
}

// Alive reports whether the process still runs.
func (a Anchor) Alive() bool {
	now, ok := lookUp(a.PID)
	return ok && now.Start == a.Start
}

// PIDs returns the PIDs of the anchors that run now.
func (s *Set) PIDs() (pids []int) {
	for _, a := range s.List() {
		if a.Alive() {
			pids = append(pids, a.PID)
		}
	}
	return pids
}

// Watch calls f with the current anchors, and again whenever they change, one call at a time,
// until stop is called. f must not call the set's methods.
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
