package judge

import "slices"

// charge gives each instant from start to end to the deepest span that runs then, and among equals to the one
// that began last; and of what that one waits for to the highest in rank, and among equals again to the one
// that began last. It adds to the own of spans and waits, and returns the time in which no span ran.
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

// edge is the beginning or the end of a span, or of a wait.
type edge struct {
	at    int64
	place int // of a span its index, of a wait its index behind all spans
	ends  bool
}

// edges lists them by time; of the same time in the order of spans, then of waits, each with
// its beginning first.
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
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		case a.place != b.place:
			return a.place - b.place
		case a.ends:
			return 1
		}
		return -1
	})
	return all
}

// stack holds the indexes of what is under way, by level: spans by depth, or waits by rank.
// What is over is dropped only when it comes to the top, so that a whole call takes no more
// steps than it has spans and waits.
type stack struct {
	levels  [][]int // each in order of beginning
	highest int     // above it all levels are empty
	over    []bool  // by index
}

func newStack(n int) *stack { return &stack{highest: -1, over: make([]bool, n)} }

func (s *stack) push(index, level int) {
	for len(s.levels) <= level {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], index)
	s.highest = max(s.highest, level)
}

// top returns what began last on the highest level; -1 if nothing is under way.
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
