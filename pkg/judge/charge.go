package judge

import (
	"cmp"
	"slices"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// span is an image as the accounting sees it: clipped to what its run could wait for.
type span struct {
	image      *timeline.Image
	depth      int
	outer      string // the outermost command around it; empty if there is none
	start, end int64
	own        int64 // time in which it was the innermost
}

// flatten lists the images of a call, parents before children.
func flatten(call *timeline.Call) []span {
	n := 0
	for _, run := range call.Runs {
		run.Walk(func(*timeline.Image) { n++ })
	}
	spans := make([]span, 0, n)
	for _, run := range call.Runs {
		spans = flattenImage(spans, run, span{start: call.Start, end: call.End, depth: -1})
	}
	return spans
}

// flattenImage lists an image and what is below it. A child is clipped to its parent's
// extent: nothing waited for what went on after that.
func flattenImage(spans []span, im *timeline.Image, parent span) []span {
	s := span{image: im, depth: parent.depth + 1, outer: parent.outer, start: max(im.Start, parent.start), end: min(im.End, parent.end)}
	s.end = max(s.start, s.end)
	spans = append(spans, s)
	switch {
	case im.Run != nil:
		s.outer = ""
	case s.outer == "":
		s.outer = im.Name
	}
	for _, child := range im.Children {
		spans = flattenImage(spans, child, s)
	}
	return spans
}

// charge gives every instant between from and to to the deepest span there, of several
// the one that began last, and returns what is left over.
func charge(spans []span, from, to int64) (nobody int64) {
	type edge struct {
		at   int64
		edge int // 2 × the span's place, 1 more for its end
	}
	edges := make([]edge, 0, 2*len(spans))
	for i, s := range spans {
		if s.end > s.start {
			edges = append(edges, edge{s.start, 2 * i}, edge{s.end, 2*i + 1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if c := cmp.Compare(a.at, b.at); c != 0 {
			return c
		}
		return cmp.Compare(a.edge, b.edge)
	})

	running := levels{deepest: -1, over: make([]bool, len(spans))}
	now := from
	for _, e := range edges {
		if inner := running.innermost(); inner >= 0 {
			spans[inner].own += e.at - now
		} else {
			nobody += e.at - now
		}
		now = e.at
		if i := e.edge / 2; e.edge%2 == 0 {
			running.begin(i, spans[i].depth)
		} else {
			running.over[i] = true
		}
	}
	return nobody + to - now
}

// levels are the running spans by their depth, each level in order of their start. What
// is over is dropped when it comes to the top, so that all of it takes no more steps
// than there are spans.
type levels struct {
	at      [][]int
	deepest int    // below it all are empty
	over    []bool // by span
}

func (l *levels) begin(span, depth int) {
	for len(l.at) <= depth {
		l.at = append(l.at, nil)
	}
	l.at[depth] = append(l.at[depth], span)
	l.deepest = max(l.deepest, depth)
}

// innermost is the span that began last of those that are deepest; -1 if none runs.
func (l *levels) innermost() int {
	for ; l.deepest >= 0; l.deepest-- {
		for level := l.at[l.deepest]; len(level) > 0; level = l.at[l.deepest] {
			last := level[len(level)-1]
			if !l.over[last] {
				return last
			}
			l.at[l.deepest] = level[:len(level)-1]
		}
	}
	return -1
}
