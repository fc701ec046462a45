//go:build linux

package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cniscope/cniscope/test/soak/agentd/protocol"
)

type plan struct {
	Round int
	Burst bool // concurrent, otherwise in sequence
	// Control means without cniscope, for comparison.
	Control bool `json:",omitempty"`
	Pods    []string
	Faults  []planned
}

type planned struct {
	Kind string
	// After is the number of answered pods before it, Delay an additional delay.
	After int
	Delay time.Duration
	Hold  time.Duration
}

type sizes struct {
	Singles int
	Bursts  []int
	Faults  []int // possible numbers of faults
}

// full is for a soak: a burst is a rollout's, or a full node's (110 pods by default, and terminating ones).
var full = sizes{Singles: 8, Bursts: []int{30, 30, 30, 135}, Faults: []int{0, 1, 1, 2, 2}}

// small is for a test.
var small = sizes{Singles: 5, Bursts: []int{7}, Faults: []int{1, 1, 1, 0}}

func schedule(seed uint64, round int, s sizes, kinds []fault) plan {
	r := rand.New(rand.NewPCG(seed, uint64(round)))
	p := plan{Round: round, Burst: r.IntN(2) == 0}
	n := s.Singles
	if p.Burst {
		n = s.Bursts[r.IntN(len(s.Bursts))]
	}
	late := r.IntN(n)
	for i := range n {
		name := fmt.Sprintf("r%d-%d", round, i)
		if i == late {
			name += protocol.Late
		}
		p.Pods = append(p.Pods, name)
	}
	var parts []string
	for i := range s.Faults[r.IntN(len(s.Faults))] {
		f := dealt(seed, round*slices.Max(s.Faults)+i, kinds)
		if slices.Contains(parts, f.part) {
			continue // a stopped process cannot change options
		}
		parts = append(parts, f.part)
		p.Faults = append(p.Faults, planned{
			Kind: f.kind, After: r.IntN(n), Delay: time.Duration(r.IntN(400)) * time.Millisecond,
			Hold: time.Second + time.Duration(r.IntN(3000))*time.Millisecond,
		})
	}
	p.Control = len(p.Faults) == 0 && r.IntN(2) == 0
	return p
}

// dealt returns card n of consecutively shuffled decks.
func dealt(seed uint64, n int, kinds []fault) fault {
	deck := rand.New(rand.NewPCG(seed, 1<<32+uint64(n/len(kinds)))).Perm(len(kinds))
	return kinds[deck[n%len(kinds)]]
}
