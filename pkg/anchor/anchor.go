// Package anchor knows which processes are the node's container runtime: whoever serves
// its NRI or CRI socket, as the kernel says of the other end of a connection that we made,
// and whom the option probe.callers names. What the kernel probe believes of CNI, and whom
// the relay answers first, is anchored to them (docs/trust.md).
//
// Data flows one way: sources tell a Set, and whoever needs it watches.
package anchor

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// Anchor is one process of the container runtime. PID and Start together identify it: who
// gets its number when it is gone is nobody.
type Anchor struct {
	// PID is its number in our PID namespace.
	PID int `json:"pid"`
	// Start is when it was forked, in ns since boot, in steps of 10 ms as /proc has it.
	Start int64 `json:"start"`
	// Name is its program, as the kernel calls it (at most 15 bytes).
	Name string `json:"name,omitempty"`
	// How says by what it is known: "serves /run/containerd/containerd.sock".
	How string `json:"how"`
	// Rootless: it is in a user namespace of its own, and the operator allowed that.
	Rootless bool `json:"rootless,omitempty"`
}

// String says who is believed, for people.
func (a Anchor) String() string {
	return fmt.Sprintf("%s (pid %d, %s)", a.Name, a.PID, a.How)
}

// Set is the anchors of a node. Make it with New; it is safe for concurrent use.
//
// An anchor that ends stays until somebody else is known in the same way: no other process
// can pass for it, and a node whose runtime is being restarted must not be taken for one
// that has none.
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

// Serves says that pid serves socket, in place of who did before. The first process of a
// system never does: under socket activation the kernel names who called listen(2), and that
// is the ancestor of all. A pid of 0 is one that we cannot see. It says whether pid is an
// anchor now.
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

// put replaces the anchors that are known in one way, and tells the watchers of a change.
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

// List returns the anchors in order of their PIDs. One that is known in two ways is in it
// once, under the first; some may be over already.
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

// Has tells whether the process that has the number pid now is an anchor.
func (s *Set) Has(pid int) bool {
	for _, a := range s.List() {
		if a.PID == pid && a.Alive() {
			return true
		}
	}
	return false
}

// Alive tells whether the process is still there.
func (a Anchor) Alive() bool {
	now, ok := lookUp(a.PID)
	return ok && now.Start == a.Start
}

// PIDs returns the numbers of the anchors that are there now.
func (s *Set) PIDs() (pids []int) {
	for _, a := range s.List() {
		if a.Alive() {
			pids = append(pids, a.PID)
		}
	}
	return pids
}

// Watch calls f with the anchors as they are and then whenever they change, one call after
// another, until stop is called. f must not call the set's methods.
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
