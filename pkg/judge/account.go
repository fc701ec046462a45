package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// PartKind is what kind of thing a call's time went into.
type PartKind string

// The kinds of parts. Every instant of a call belongs to exactly one: to the innermost
// command that ran, else to the innermost plugin, else to nobody.
const (
	// Commands: an external command was running.
	Commands PartKind = "command"
	// Plugins: a plugin itself was running on a CPU or waiting for one.
	Plugins PartKind = "plugin"
	// Between: no plugin was running; the runtime had the word.
	Between PartKind = "between runs"
	// Unexplained: a plugin was there, ran no command and was not on a CPU.
	Unexplained PartKind = "unexplained"
)

// Part is a share of a call's wall time.
type Part struct {
	Kind PartKind
	// Name is the command's or the plugin's; empty for Between. What a command ran is
	// named with it: "policyctl > sleep".
	Name string
	Time time.Duration
	// Count is how many images of that name there were; 0 for Between.
	Count int
}

// String says it as a person would: "command iptables (9 times)".
func (p Part) String() string {
	switch p.Kind {
	case Between:
		return "between plugins, in the runtime"
	case Unexplained:
		return "unexplained, inside plugin " + p.Name
	}
	if p.Count > 1 {
		return fmt.Sprintf("%s %s (%d times)", p.Kind, p.Name, p.Count)
	}
	return fmt.Sprintf("%s %s", p.Kind, p.Name)
}

// span is an image as the accounting sees it: clipped to what its run could wait for.
type span struct {
	image      *timeline.Image
	depth      int
	outer      string // the outermost command around it; empty if there is none
	start, end int64
	own        int64 // time in which it was the innermost
}

// account divides the wall time of a call.
func account(call *timeline.Call) []Part {
	var spans []*span
	for _, run := range call.Runs {
		spans = flatten(spans, run, 0, "", call.Start, call.End)
	}
	between := charge(spans, call.Start, call.End)

	parts := map[[2]string]*Part{}
	add := func(kind PartKind, name string, d int64, n int) {
		key := [2]string{string(kind), name}
		if parts[key] == nil {
			parts[key] = &Part{Kind: kind, Name: name}
		}
		parts[key].Time += time.Duration(d)
		parts[key].Count += n
	}
	for _, s := range spans {
		if s.image.Run == nil {
			name := s.image.Name
			if s.outer != "" && s.outer != name {
				name = s.outer + " > " + name
			}
			add(Commands, name, s.own, 1)
			continue
		}
		// CPU and run delay cover the whole run, also while a command ran beside it, so
		// they can explain no more than they are.
		explained := min(s.own, s.image.CPU+s.image.RunDelay)
		add(Plugins, s.image.Run.Plugin, explained, 1)
		add(Unexplained, s.image.Run.Plugin, s.own-explained, 1)
	}
	add(Between, "", between, 0)

	var all []Part
	for _, p := range parts {
		if p.Time > 0 {
			all = append(all, *p)
		}
	}
	slices.SortFunc(all, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// flatten lists an image and what is below it. A child is clipped to its parent's
// extent: nothing waited for what went on after that.
func flatten(spans []*span, im *timeline.Image, depth int, outer string, from, to int64) []*span {
	s := &span{image: im, depth: depth, outer: outer, start: max(im.Start, from), end: min(im.End, to)}
	if s.end < s.start {
		s.end = s.start
	}
	spans = append(spans, s)
	switch {
	case im.Run != nil:
		outer = ""
	case outer == "":
		outer = im.Name
	}
	for _, child := range im.Children {
		spans = flatten(spans, child, depth+1, outer, s.start, s.end)
	}
	return spans
}

// charge gives every instant between from and to to the deepest span there, of several
// the one that began last, and returns what is left over.
func charge(spans []*span, from, to int64) (nobody int64) {
	type edge struct {
		at    int64
		begin bool
		span  *span
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, s := range spans {
		if s.end > s.start {
			edges = append(edges, edge{s.start, true, s}, edge{s.end, false, s})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })

	var levels [][]*span // running, by depth, in order of their start
	now := from
	for _, e := range edges {
		if inner := innermost(levels); inner != nil {
			inner.own += e.at - now
		} else {
			nobody += e.at - now
		}
		now = e.at
		for len(levels) <= e.span.depth {
			levels = append(levels, nil)
		}
		level := &levels[e.span.depth]
		if e.begin {
			*level = append(*level, e.span)
		} else if i := slices.Index(*level, e.span); i >= 0 {
			*level = slices.Delete(*level, i, i+1)
		}
	}
	return nobody + to - now
}

func innermost(levels [][]*span) *span {
	for _, level := range slices.Backward(levels) {
		if len(level) > 0 {
			return level[len(level)-1]
		}
	}
	return nil
}
