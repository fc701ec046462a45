package tree

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestAnyOrderIsCountedRight(t *testing.T) {
	for seed := range uint64(500) {
		r, tree := rand.New(rand.NewPCG(seed, 1)), New(8)
		some := func() event.Process { return event.Process(fmt.Sprint("p", r.IntN(10))) }
		for range 60 {
			p := some()
			switch r.IntN(6) {
			case 0, 1:
				tree.Apply(&event.Fork{Process: p, Parent: some()})
			case 2:
				e := &event.Exec{
					Process: p, Parent: some(), Root: r.IntN(2) == 0, InPath: r.IntN(2) == 0,
					Stdin: fmt.Sprint(r.IntN(3)),
				}
				if r.IntN(3) > 0 {
					e.Call = &event.Call{}
				}
				tree.Apply(e)
			case 3:
				tree.Apply(&event.Exit{Process: p})
			case 4:
				tree.Serve(p, 1+r.IntN(2))
			case 5:
				if known := tree.Get(p); known != nil && r.IntN(2) == 0 {
					tree.Assign(known)
				} else if a := tree.Agent(p); a != nil {
					tree.Dismiss(a)
				}
			}
			consistent(t, seed, tree)
		}
	}
}

func consistent(t *testing.T, seed uint64, tree *Tree) {
	t.Helper()
	inRuns, ofAgents := 0, 0
	for key, p := range tree.processes {
		owned, n := tree.owner(p)
		if owned[key] != p {
			t.Fatalf("seed %d: %s is not with its owner", seed, key)
		}
		if n == &tree.inRuns {
			inRuns++
		} else {
			ofAgents++
		}
	}
	if inRuns != tree.inRuns || ofAgents != tree.ofAgents || max(inRuns, ofAgents) > tree.limit {
		t.Fatalf("seed %d: %d and %d processes are counted, %d and %d there", seed, tree.inRuns, tree.ofAgents, inRuns,
			ofAgents)
	}
	for key, a := range tree.agents {
		if tree.processes[key] == nil {
			t.Fatalf("seed %d: agent %s is no process", seed, key)
		}
		for of, p := range a.processes {
			if tree.processes[of] != p {
				t.Fatalf("seed %d: agent %s has %s, which is gone", seed, key, of)
			}
		}
	}
}

func TestDelegatesNestSoDeepOnly(t *testing.T) {
	s := &story{Tree: New(4)}
	s.runs("0", "cd", "BRIDGE", "0", root)
	for i := 1; i < 1000; i++ {
		before, key := fmt.Sprint(i-1), fmt.Sprint(i)
		s.child(key, before, "PTP", key).exit(before)
	}
	deep := 0
	for r := s.Get("999").Run; r.Around != nil; r = r.Around {
		deep++
	}
	if s.Len() != 1 || deep != maxNested {
		t.Errorf("%d processes, and delegates nest %d deep", s.Len(), deep)
	}
}
