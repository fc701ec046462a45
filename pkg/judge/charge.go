package judge

import (
	"cmp"
	"slices"
)

// charge gives each instant to the deepest span, and within it to its wait of the highest rank; among equals to the
// last begun. It adds to own of spans and waits, and returns the time without a span.
func charge(spans []span, waits []wait, start, end int64) (nobody int64) {
	running := newStack(len(spans))
	waiting := make([]stack, len(spans))
	over := make([]bool, len(waits)) // shared by all of waiting
	now := start
	for _, e := range edges(spans, waits) {
		took := e.at - now
		now = e.at
		switch inner := running.top(); {
		case inner < 0:
			nobody += took
		case waiting[inner].levels == nil:
			spans[inner].own += took
		default:
			if w := waiting[inner].top(); w >= 0 {
				waits[w].own += took
			} else {
				spans[inner].own += took
			}
		}
		switch i, w := e.place, e.place-len(spans); {
		case w < 0 && e.ends:
			running.over[i] = true
		case w < 0:
			running.push(i, spans[i].depth)
		case e.ends:
			over[w] = true
		default:
			of := &waiting[waits[w].span]
			if of.levels == nil {
				*of = stack{over: over, highest: -1, levels: make([][]int, ranks)}
			}
			of.push(w, int(waits[w].rank))
		}
	}
	return nobody + end - now
}

type edge struct {
	at    int64
	place int // index of a span, or number of spans plus index of a wait
	ends  bool
}

// edges are sorted by time, then spans before waits.
func edges(spans []span, waits []wait) []edge {
	all := make([]edge, 0, 2*len(spans)+2*len(waits))
	for i, s := range spans {
		if s.end > s.start {
			all = append(all, edge{s.start, i, false}, edge{s.end, i, true})
		}
	}
	for i := range waits {
		w, place := &waits[i], len(spans)+i
		all = append(all, edge{w.start, place, false}, edge{w.end, place, true})
	}
	slices.SortFunc(all, func(a, b edge) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return a.place - b.place
	})
	return all
}

// stack holds indexes in progress: spans by depth, or waits by rank. Finished ones are dropped only at the top.
type stack struct {
	levels  [][]int // in order of beginning
	highest int     // all levels above are empty
	over    []bool
}

func newStack(n int) *stack { return &stack{highest: -1, over: make([]bool, n)} }

func (s *stack) push(index, level int) {
	for len(s.levels) <= level {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], index)
	s.highest = max(s.highest, level)
}

func (s *stack) top() int {
	for ; s.highest >= 0; s.highest-- {
		for level := s.levels[s.highest]; len(level) > 0; level = s.levels[s.highest] {
			last := level[len(level)-1]
			if !s.over[last] {
				return last
			}
			s.levels[s.highest] = level[:len(level)-1]
		}
	}
	return -1
}
