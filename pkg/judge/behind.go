package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// behind holds when each exchange on the way to an agent's answer counts, in order, and the candidates left out
// because the agent waited for another process then.
type behind struct {
	exchanges map[*model.Connection][]model.Interval
	left      map[*model.Image]bool
	partly    map[*model.Connection]bool
}

type reply int

const (
	hadAll reply = iota
	// hadSome: the caller read something, and later more, unasked. On a shared stream that belongs to others, or is a
	// part of the answer.
	hadSome
	hadNone
)

// behindOf goes back from an agent's answer over an interval. Without an answer, unfinished waits count, too;
// uncertain ones only for stopped or frozen processes.
func behindOf(w *model.Work, when model.Interval, had reply) *behind {
	var steps []step
	var exchanges []*model.Connection
	var images []*model.Image
	add := func(s step, x *model.Connection, im *model.Image) {
		if had == hadNone && s.End >= when.End {
			s.End, s.filler = when.End, !s.certain
		}
		steps, exchanges, images = append(steps, s), append(exchanges, x), append(images, im)
	}
	for _, f := range w.Own.Facts {
		c, is := f.What.(*model.Connection)
		switch {
		case is && c.Exchange != nil:
			all := model.Interval{Start: f.When.Start, End: when.End}
			if had == hadSome && (f.When.End >= when.End || c.Exchange.Unended) && heldUp(c, all) {
				add(step{Interval: all, filler: true}, c, nil)
			} else if at, is := explains(w, c, f.When); is && (had == hadNone || !outlasts(c)) {
				add(step{Interval: at, filler: c.Exchange.Unasked, held: heldUp(c, at)}, c, nil)
			}
		case is && c.Exchanged == 0, asks(f.Kind()):
			add(step{Interval: f.When, certain: !doubted(false, f.Attribution)}, nil, nil)
		}
	}
	if !exchanged(w, steps, exchanges, when) {
		return nil
	}
	for _, im := range w.Own.Children {
		add(step{Interval: model.Interval{Start: im.Start, End: im.End}, certain: !doubted(false, im.Attribution)}, nil, im)
	}
	counts := way(steps, when)
	dropPolls(steps, exchanges, counts)
	b := &behind{
		exchanges: map[*model.Connection][]model.Interval{}, left: map[*model.Image]bool{},
		partly: readsMore(w.Own.Facts),
	}
	for i, at := range counts {
		if exchanges[i] != nil && at.End > at.Start {
			b.exchanges[exchanges[i]] = []model.Interval{at}
		}
	}
	b.sinceBefore(w, steps, exchanges, counts, when)
	b.leave(steps, images, counts)
	return b
}

func exchanged(w *model.Work, steps []step, exchanges []*model.Connection, when model.Interval) bool {
	for i, c := range exchanges {
		if c != nil && mayBeFor(w, steps[i].Interval, when) {
			return true
		}
	}
	return false
}

// mayBeFor: an agent that sleeps may poll its worker.
func mayBeFor(w *model.Work, at, when model.Interval) bool {
	return !w.Slept() || float64(at.Took()) > enough*float64(when.Took())
}

// dropPolls uncounts short exchanges with one peer that a timer may have started.
func dropPolls(steps []step, exchanges []*model.Connection, counts []model.Interval) {
	peers := map[string][]int{}
	for i, c := range exchanges {
		if c != nil && counts[i].End > counts[i].Start && !steps[i].held {
			peers[peerName(c)+c.Address] = append(peers[peerName(c)+c.Address], i)
		}
	}
	others := slices.Clone(counts)
	for _, some := range peers {
		var own []model.Interval
		for _, i := range some {
			own = append(own, counts[i])
		}
		if !sporadic(own, others) {
			continue
		}
		for _, i := range some {
			counts[i] = model.Interval{}
		}
	}
}

// sporadic reports whether intervals began regularly, and neither one nor all fill their span.
func sporadic(some, others []model.Interval) bool {
	if !regular(some) {
		return false
	}
	span, longest := some[0], int64(0)
	for _, at := range some {
		span = model.Interval{Start: min(span.Start, at.Start), End: max(span.End, at.End)}
		longest = max(longest, at.Took())
	}
	all := busyTimes{all: append(slices.Clone(others), some...)}
	all.join()
	took := span.Took()
	return longest <= took/2 && float64(all.within(span)) < enough*float64(took)
}

func regular(some []model.Interval) bool {
	var starts, pauses []int64
	for _, at := range some {
		starts = append(starts, at.Start)
	}
	slices.Sort(starts)
	for i := 1; i < len(starts); i++ {
		pauses = append(pauses, starts[i]-starts[i-1])
	}
	return len(pauses) >= 3 && 2*slices.Max(pauses) <= 3*slices.Min(pauses)
}

// readsMore returns the exchanges whose end may not be the answer: unasked ones, and any directly before.
func readsMore(facts []*model.Fact) map[*model.Connection]bool {
	type end struct {
		who     event.Process
		address string
	}
	begun, more := map[end][]int64{}, map[*model.Connection]bool{}
	for f, c := range model.Each[*model.Connection](facts) {
		if c.Exchange != nil && c.Exchange.Unasked && c.Agent != nil {
			e := end{c.Agent.Process, c.Address}
			begun[e], more[c] = append(begun[e], f.When.Start), true
		}
	}
	for f, c := range model.Each[*model.Connection](facts) {
		if c.Exchange != nil && !more[c] && c.Agent != nil {
			more[c] = slices.ContainsFunc(begun[end{c.Agent.Process, c.Address}], func(at int64) bool {
				return max(at-f.When.End, f.When.End-at) < int64(time.Millisecond)
			})
		}
	}
	return more
}

func (b *behind) leave(steps []step, images []*model.Image, counts []model.Interval) {
	for i, im := range images {
		if im == nil || steps[i].certain || counts[i].End > counts[i].Start {
			continue
		}
		for _, times := range b.exchanges {
			for _, at := range times {
				b.left[im] = b.left[im] || at.Start < im.End && im.Start < at.End
			}
		}
	}
}

func (b *behind) when(c *model.Connection) []model.Interval {
	if b == nil {
		return nil
	}
	return b.exchanges[c]
}

// asks reports whether facts of a kind are steps of an agent, not details of other steps.
func asks(k model.FactKind) bool {
	switch k {
	case model.FactLock, model.FactChange, model.FactQuery, model.FactSetting, model.FactMount:
		return true
	}
	return false
}

// explains returns when an exchange explains an agent's delay: never while the agent itself could not go on. An
// exchange that began before the call, or unasked, may be a silent subscription: it counts only if a process behind
// it was stopped or frozen.
func explains(w *model.Work, c *model.Connection, when model.Interval) (model.Interval, bool) {
	stood := func(at model.Interval) bool { return spent(w, at, halted...) > (at.End-at.Start)/2 }
	if heldUp(c, when) {
		return when, !stood(when)
	}
	at, asks := asksFor(c, when)
	return at, asks && !stood(at) && !busy(w, at)
}

func asksFor(c *model.Connection, when model.Interval) (model.Interval, bool) {
	x := c.Exchange
	switch {
	case x.Unasked:
		return when, false
	case !x.Clipped && !x.Receipt:
		return when, true
	}
	return model.Interval{Start: x.Asked, End: when.End}, x.Asked != 0
}

// heldUp reports whether an agent, or a process behind it, was halted for most of an interval.
func heldUp(c *model.Connection, when model.Interval) bool {
	if c.Work == nil {
		return false
	}
	most := func(took model.Interval) (model.Interval, bool) {
		at := model.Interval{Start: max(took.Start, when.Start), End: min(took.End, when.End)}
		return at, at.End-at.Start > (when.End-when.Start)/2
	}
	if wasHalted(c, when) {
		return true
	}
	for f, next := range model.Each[*model.Connection](c.Work.Own.Facts) {
		if at, is := most(f.When); is && next.Exchange != nil && heldUp(next, at) {
			return true
		}
	}
	for _, m := range c.Work.Meanwhile { // a stopped process delays all its callers
		if m.Fact == nil {
			continue
		}
		next, is := m.Fact.What.(*model.Connection)
		if at, long := most(m.When); is && long && next.Exchange != nil && wasHalted(next, at) {
			return true
		}
	}
	return false
}

func wasHalted(c *model.Connection, when model.Interval) bool {
	return c.Work != nil && spent(c.Work, when, halted...) > (when.End-when.Start)/2
}

var halted = []event.AgentState{event.AgentStopped, event.AgentFrozen}

// busy reports whether an agent was stuck in the kernel or on a CPU for most of an interval. Its CPU time must agree:
// on a loaded node some thread always waits for a CPU.
func busy(w *model.Work, when model.Interval) bool {
	took := when.End - when.Start
	in := spent(w, when, event.AgentUninterruptible)
	if w.CPU > took/2 {
		in += spent(w, when, event.AgentRunning)
	}
	return float64(in) > enough*float64(took)
}

func spent(w *model.Work, when model.Interval, in ...event.AgentState) (took int64) {
	for _, s := range w.Spent(when) {
		for _, state := range in {
			if s.State == state {
				took += s.Time
			}
		}
	}
	return took
}

func outlasts(c *model.Connection) bool { return c.Exchange.Unended && !c.Exchange.Clipped }

// sinceBefore extends waits for a halted process back over idle times, while another exchange with it was in
// progress.
func (b *behind) sinceBefore(w *model.Work, steps []step, exchanges []*model.Connection, counts []model.Interval, when model.Interval) {
	underWay := notWhole(steps, exchanges, counts)
	var counting []int
	for i := range steps {
		if counts[i].End > counts[i].Start {
			counting = append(counting, i)
		}
	}
	slices.SortFunc(counting, func(x, y int) int { return cmp.Compare(counts[x].Start, counts[y].Start) })
	free := when.Start // nothing counts from here to the next that does
	var gaps []model.Interval
	for _, i := range counting {
		gaps = append(gaps, model.Interval{Start: free, End: counts[i].Start})
		free = counts[i].End
	}
	for n, i := range slices.Backward(counting) {
		if exchanges[i] == nil || exchanges[i].Agent == nil {
			continue
		}
		first, known := underWay[exchanges[i].Agent.Process]
		if !known {
			continue
		}
		c, since := exchanges[first], model.Interval{End: counts[i].Start}
		for _, gap := range slices.Backward(gaps[:n+1]) {
			gap.Start = max(gap.Start, steps[first].Start)
			if since.Start = gap.Start; gap.Start >= gap.End || steps[first].End < gap.End {
				continue
			}
			if !haltedSince(c, since, counts[i].End) {
				break
			}
			if !busy(w, gap) {
				b.exchanges[c] = slices.Insert(b.exchanges[c], 0, gap)
				delete(underWay, c.Agent.Process)
			}
		}
	}
}

// notWhole returns, by process, the exchange that began first, then ended last, among those that do not count wholly.
func notWhole(steps []step, exchanges []*model.Connection, counts []model.Interval) map[event.Process]int {
	all := map[event.Process]int{}
	for i, c := range exchanges {
		if c == nil || c.Work == nil || c.Agent.Process == "" || counts[i] == steps[i].Interval {
			continue
		}
		first, known := all[c.Agent.Process]
		if !known || cmp.Or(cmp.Compare(steps[i].Start, steps[first].Start), cmp.Compare(steps[first].End, steps[i].End)) < 0 {
			all[c.Agent.Process] = i
		}
	}
	return all
}

// haltedSince reports whether an agent was halted in every sample of an interval, and for most of the time until an
// instant after it.
func haltedSince(c *model.Connection, when model.Interval, until int64) bool {
	for _, s := range c.Work.Spent(when) {
		if !slices.Contains(halted, s.State) {
			return false
		}
	}
	return wasHalted(c, model.Interval{Start: when.Start, End: until})
}
