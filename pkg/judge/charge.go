package judge

import (
	"slices"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// span is an image as the accounting sees it: clipped to what its run could wait for.
type span struct {
	image *timeline.Image
	depth int
	outer string // the outermost command around it; empty if there is none
	// top is the place of the outermost command that it is part of, itself included; of what
	// a server ran, of the one that the server itself ran. -1 if it is no command.
	top int
	// agent is the connection of which the image is the server's work, or nil; served the one
	// for which it was run by a server; plugin is who called it.
	agent, served *timeline.Connection
	plugin        string
	leaves        bool // the innermost run around it ended by itself: it waited for nothing that outlived it
	start, end    int64
	own           int64 // time in which it was the innermost
}

// flatten lists the images of a call, parents before children.
func flatten(call *timeline.Call) []span {
	n := 0
	for _, run := range call.Runs {
		run.Walk(func(*timeline.Image) { n++ })
	}
	spans := make([]span, 0, n)
	for _, run := range call.Runs {
		spans = flattenImage(spans, run, span{start: call.Start, end: call.End, depth: -1, top: -1})
	}
	return spans
}

// flattenImage lists an image and what is below it. A child is clipped to its parent's
// extent: nothing waited for what went on after that. What goes on after a run has ended by
// itself was not waited for at all.
func flattenImage(spans []span, im *timeline.Image, parent span) []span {
	s := span{
		image: im, depth: parent.depth + 1, outer: parent.outer, top: parent.top, agent: parent.agent, served: parent.served,
		plugin: parent.plugin, leaves: parent.leaves,
		start: max(im.Start, parent.start), end: min(im.End, parent.end),
	}
	s.end = max(s.start, s.end)
	inAgent := parent.served != nil
	switch {
	case im.Run != nil:
		s.top, s.served, s.plugin = -1, nil, im.Run.Plugin
		s.leaves = im.Ended && im.Signal == "" && !im.Outlived
	case s.top < 0 && s.agent == nil:
		s.top = len(spans)
	}
	spans = append(spans, s)
	switch {
	case im.Run != nil:
		s.outer = ""
	case inAgent:
		s.outer += " > " + im.Name
	case s.outer == "":
		s.outer = im.Name
	}
	if s.agent != nil {
		s.served, s.agent = s.agent, nil
	}
	for _, child := range im.Children {
		if child.Outlived && s.leaves {
			continue
		}
		spans = flattenImage(spans, child, s)
	}
	// What a server did for others, or for nobody knows whom, is not what this call waited
	// for.
	for _, c := range timeline.Each[*timeline.Connection](im.Facts) {
		if c.Work != nil {
			below := s
			below.agent, below.top = c, -1
			spans = flattenImage(spans, c.Work.Own, below)
		}
	}
	return spans
}

// charge gives every instant between from and to to the deepest span there, of several the
// one that began last, and of what that one waited for to the highest in rank, of several
// again to the one that began last. It returns what is left over.
func charge(spans []span, waits []wait, from, to int64) (nobody int64) {
	running := newLevels(len(spans))
	waiting := make([]levels, len(spans))
	over := make([]bool, len(waits))
	now := from
	for _, e := range edges(spans, waits) {
		inner := running.innermost()
		switch {
		case inner < 0:
			nobody += e.at - now
		case len(waiting[inner].at) == 0:
			spans[inner].own += e.at - now
		default:
			if w := waiting[inner].innermost(); w >= 0 {
				waits[w].own += e.at - now
			} else {
				spans[inner].own += e.at - now
			}
		}
		now = e.at
		i, ends := e.of/2, e.of%2 == 1
		w := i - len(spans)
		switch {
		case ends && w < 0:
			running.over[i] = true
		case ends:
			over[w] = true
		case w < 0:
			running.begin(i, spans[i].depth)
		default:
			of := &waiting[waits[w].span]
			if of.over == nil {
				*of = levels{over: over, deepest: -1, at: make([][]int, ranks)}
			}
			of.begin(w, waits[w].rank)
		}
	}
	return nobody + to - now
}

// edge is when a span or a wait begins or ends.
type edge struct {
	at int64
	of int // 2 × its place, waits behind all spans; 1 more for its end
}

// edges lists them in order of their time.
func edges(spans []span, waits []wait) []edge {
	all := make([]edge, 0, 2*len(spans)+2*len(waits))
	for i, s := range spans {
		if s.end > s.start {
			all = append(all, edge{s.start, 2 * i}, edge{s.end, 2*i + 1})
		}
	}
	for i := range waits {
		w, place := &waits[i], i+len(spans)
		all = append(all, edge{w.start, 2 * place}, edge{w.end, 2*place + 1})
	}
	slices.SortFunc(all, func(a, b edge) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return a.of - b.of
	})
	return all
}

// levels are the running spans by their depth (or waits by their rank), each level in order
// of their start. What
// is over is dropped when it comes to the top, so that all of it takes no more steps
// than there are spans.
type levels struct {
	at      [][]int
	deepest int    // below it all are empty
	over    []bool // by place
}

func newLevels(n int) *levels { return &levels{deepest: -1, over: make([]bool, n)} }

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
