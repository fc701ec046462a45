package judge

import (
	"cmp"
	"regexp"
	"slices"
	"sort"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// span is an image, clipped to when its call could wait for it.
type span struct {
	image         *model.Image
	depth         int
	outer         string // outermost command around it
	top           int
	agent, served *model.Connection
	// ranBy names an agent whose callers are invisible (model.Image.By).
	ranBy  string
	behind *behind
	// via names the callers of an agent that no plugin called.
	via string
	// had is what the caller had of the answer: hadNone after a failure.
	had reply
	// again: the exchange also counts at an earlier time.
	again  bool
	plugin string
	leaves bool // the innermost run around it exited without waiting for what outlived it
	// candidate: an agent ran it, which proves nothing (model.Candidate).
	candidate  bool
	start, end int64
	forked     int64
	own        int64 // ns without a known wait
	free       int64 // own and weak waits
}

// command reports whether it is a command, whose work counts as the command unless others hold it up.
func (s *span) command() bool { return s.image.Run == nil && s.agent == nil }

func (s *span) waiter() string {
	if s.image.Run != nil {
		return s.image.Run.Plugin
	}
	return s.image.Name
}

func flatten(call *model.Call) []span {
	n := 0
	for _, run := range call.Runs {
		run.Walk(func(*model.Image) { n++ })
	}
	spans := make([]span, 0, n)
	for _, run := range call.Runs {
		spans = flattenImage(spans, run, span{start: call.Start, end: call.End, depth: -1, top: -1})
	}
	return spans
}

// leaves reports whether a run exited by itself, in time.
func leaves(run *model.Image) bool {
	r := result(run)
	late := r != nil && Fails(run) && timedOut.MatchString(r.Message+r.Stderr)
	return run.Ended && run.Signal == "" && !run.Outlived && !late
}

var timedOut = regexp.MustCompile(`(?i)deadline exceeded|timed?[ -]?out`)

// flattenImage lists an image and those below, clipped to their parent.
func flattenImage(spans []span, im *model.Image, parent span) []span {
	s := span{
		image: im, depth: parent.depth + 1, outer: parent.outer, top: parent.top, agent: parent.agent, served: parent.served,
		plugin: parent.plugin, via: parent.via, ranBy: ranBy(im, parent), had: parent.had, again: parent.again && parent.agent != nil, leaves: parent.leaves, candidate: doubted(parent.candidate, im.Attribution),
		start: max(cmp.Or(parent.forked, im.Start), parent.start), end: min(im.End, parent.end),
	}
	s.end = max(s.start, s.end)
	inAgent := parent.served != nil
	switch {
	case im.Run != nil:
		s.top, s.served, s.plugin, s.via, s.ranBy, s.had = -1, nil, im.Run.Plugin, "", "", hadAll
		if !im.Ended || Fails(im) {
			s.had = hadNone
		}
		s.leaves = leaves(im)
	case s.top < 0 && s.agent == nil:
		s.top = len(spans)
	}
	if s.agent != nil && s.end > s.start {
		s.behind = behindOf(s.agent.Work, model.Interval{Start: s.start, End: s.end}, s.had)
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
	awaited := forks(im)
	for _, child := range im.Children {
		if child.Outlived && s.leaves || s.behind != nil && s.behind.left[child] {
			continue
		}
		s.forked = awaited.start(child)
		spans = flattenImage(spans, child, s)
	}
	s.forked = 0
	return flattenAgents(spans, im, s)
}

type execs []model.Interval

func forks(im *model.Image) (all execs) {
	for f, w := range model.Each[*model.Wait](im.Facts) {
		if w.Kind == event.WaitCall && (w.Name == "vfork" || w.Name == "clone" || w.Name == "clone3") {
			all = append(all, f.When)
		}
	}
	slices.SortFunc(all, func(a, b model.Interval) int { return cmp.Compare(a.End, b.End) })
	return all
}

// start returns when the parent began to wait for its child's exec (CLONE_VFORK), or 0.
func (all execs) start(child *model.Image) int64 {
	const near = int64(time.Millisecond)
	i := sort.Search(len(all), func(i int) bool { return all[i].End >= child.Start-near })
	if i == len(all) || all[i].End > child.Start+near || all[i].Start > child.Start {
		return 0
	}
	return all[i].Start
}

func ranBy(im *model.Image, parent span) string {
	if im.By != nil {
		return im.By.Name
	}
	return parent.ranBy
}

func flattenAgents(spans []span, im *model.Image, s span) []span {
	caller := s.served
	inAgent := caller != nil && im == caller.Work.Own
	// Work.Shared is left out, because it may be for other calls.
	for f, c := range model.Each[*model.Connection](im.Facts) {
		if c.Work == nil || c.Exchanged > 0 && inAgent {
			continue
		}
		below := s
		below.agent, below.top, below.candidate, below.behind = c, -1, doubted(s.candidate, f.Attribution), nil
		if inAgent {
			below.via = onBehalf(caller, s)
		}
		if c.Exchange == nil {
			spans = flattenImage(spans, c.Work.Own, below)
		}
		for n, at := range s.behind.when(c) {
			below.start, below.end, below.candidate, below.again = at.Start, at.End, s.candidate, n > 0
			below.had = hadAll
			if at.End == s.end {
				below.had = s.had
			}
			if s.behind.partly[c] {
				below.had = max(below.had, hadSome)
			}
			spans = flattenImage(spans, c.Work.Own, below)
		}
	}
	return spans
}

func onBehalf(agent *model.Connection, s span) string {
	if s.via == "" {
		return "through " + nameOf(agent) + inFunction(agent.Work)
	}
	return s.via + " and " + nameOf(agent)
}

// doubted reports whether something is only a candidate, by its own attribution, else its parent's.
func doubted(above bool, own *model.Attribution) bool {
	if own == nil {
		return above
	}
	return own.Evidence == model.Candidate
}
