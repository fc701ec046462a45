package active

import (
	"cmp"
	"math"
	"slices"

	"github.com/cniscope/cniscope/pkg/model"
)

type deed struct {
	image      *model.Image
	fact       *model.Fact
	connection *connection // if it is a fact
	claim      *claim
}

const (
	// deedsMax bounds an agent's deeds (the longest stay), meanwhileMax those of one connection.
	deedsMax     = 256
	meanwhileMax = 16
)

func (d *deed) when(now int64) model.Interval {
	switch {
	case d.fact != nil:
		return d.fact.When
	case d.image.Ended, d.claim.first.owner.Op.Closed != "":
		return model.Interval{Start: d.image.Start, End: d.image.End}
	}
	return model.Interval{Start: d.image.Start, End: max(now, d.image.Start)}
}

func (cl *claim) did(d deed) {
	if cl.first == nil {
		return
	}
	d.claim = cl
	a := cl.first.work.agent
	if len(a.deeds) >= deedsMax {
		shortest := 0
		for i := range a.deeds {
			if a.deeds[i].when(math.MaxInt64).Took() < a.deeds[shortest].when(math.MaxInt64).Took() {
				shortest = i
			}
		}
		a.deeds = slices.Delete(a.deeds, shortest, shortest+1)
	}
	a.deeds = append(a.deeds, d)
}

// Expire drops deeds and states that ended earlier.
func (as *Agents) Expire(before int64) {
	for _, a := range as.known {
		a.deeds = slices.DeleteFunc(a.deeds, func(d deed) bool { return d.when(before).End < before })
		a.spells.all = slices.DeleteFunc(a.spells.all, func(s model.Spell) bool { return s.End < before })
	}
}

func (w *work) know(now int64) {
	if w.of.owner.work == nil { // otherwise the caller's work includes it
		w.states()
	}
	w.Meanwhile = w.of.meanwhile(now)
}

func (w *work) states() {
	w.States = model.During(w.agent.spells.all, w.of.fact.When)
	for _, below := range w.below {
		below.states()
	}
}

// The method returns the agent's work for other calls, longest first.
func (c *connection) meanwhile(now int64) (all []model.Meanwhile) {
	type part struct {
		*deed
		model.Interval
	}
	var some []part
	deeds := c.work.agent.deeds
	for i := range deeds {
		when := deeds[i].when(now)
		when.Start, when.End = max(when.Start, c.fact.When.Start), min(when.End, c.fact.When.End)
		if when.Took() > 0 && !deeds[i].belongsOnlyTo(c) {
			some = append(some, part{&deeds[i], when})
		}
	}
	slices.SortStableFunc(some, func(a, b part) int { return cmp.Compare(b.Took(), a.Took()) })
	for _, d := range some[:min(len(some), meanwhileMax)] {
		all = append(all, d.seen(c, d.Interval))
		if d.connection != nil && d.connection.work != nil {
			d.connection.work.states()
		}
	}
	return all
}

func (d *deed) belongsOnlyTo(c *connection) bool {
	return len(d.claim.others) == 0 && !d.claim.Periodic && d.claim.first.owner.Call == c.owner.Call
}

func (d *deed) seen(c *connection, when model.Interval) model.Meanwhile {
	m := model.Meanwhile{
		When: when, Image: d.image, Fact: d.fact, Perhaps: d.claim.startedBefore,
		Attribution: model.Attribution{Evidence: d.claim.Evidence, Periodic: d.claim.Periodic},
	}
	var others []*connection
	for _, of := range append([]*connection{d.claim.first}, d.claim.others...) {
		if of.owner.Call == c.owner.Call {
			m.Perhaps = true
		} else {
			others = append(others, of)
		}
	}
	m.Others = keysOf(others)
	return m
}
