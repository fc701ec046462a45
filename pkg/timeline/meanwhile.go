package timeline

import (
	"cmp"
	"math"
	"slices"
)

// Meanwhile is something that an agent did while a call had a connection to it, and that is not drawn below
// this connection: it was done for another call, or nobody knows for which. Either Image or Fact is set.
type Meanwhile struct {
	// When it was, within the connection.
	When Interval
	// Image is what it ran, Fact what it asked or waited for.
	Image *Image
	Fact  *Fact
	// Attribution is the evidence as seen from this call: Others are the calls that it may have
	// been for beside this one.
	Attribution
	// Perhaps: it may have been for this call, or for none. Else it only overlaps: the evidence is
	// another call's, or it began before the connection and after another one.
	Perhaps bool
}

// deed is something that an agent did: an image or a fact.
type deed struct {
	image *Image
	fact  *Fact
	claim *claim
}

const (
	// deedsMax bounds the deeds that are remembered of one agent: the longest. meanwhileMax
	// bounds those that are told of one connection.
	deedsMax     = 256
	meanwhileMax = 16
)

func (d *deed) when(now int64) Interval {
	switch {
	case d.fact != nil:
		return d.fact.When
	case d.image.Ended, d.claim.first.Work.own.op.Closed != "":
		return Interval{d.image.Start, d.image.End}
	}
	return Interval{d.image.Start, max(now, d.image.Start)}
}

// did remembers a deed for the other calls that had a connection meanwhile.
func (cl *claim) did(d deed) {
	if cl.first == nil { // an agent that nobody was seen to call
		return
	}
	d.claim = cl
	a := cl.first.Work.agent
	if len(a.deeds) >= deedsMax {
		shortest := 0
		for i := range a.deeds {
			if a.deeds[i].when(math.MaxInt64).took() < a.deeds[shortest].when(math.MaxInt64).took() {
				shortest = i
			}
		}
		a.deeds = slices.Delete(a.deeds, shortest, shortest+1)
	}
	a.deeds = append(a.deeds, d)
}

// expire drops what agents did, and the states they were in, that were over before then.
func (as *agents) expire(before int64) {
	for _, a := range as.known {
		a.deeds = slices.DeleteFunc(a.deeds, func(d deed) bool { return d.when(before).End < before })
		a.spells.all = slices.DeleteFunc(a.spells.all, func(s Spell) bool { return s.End < before })
	}
}

// know fills in what is known of an agent only when an operation is over: its own, or another one that
// its agent may have worked for meanwhile.
func (w *Work) know(now int64) {
	w.states()
	w.Meanwhile = w.of.meanwhile(now)
	for _, m := range w.Meanwhile {
		if m.Fact == nil {
			continue
		}
		if c, is := m.Fact.What.(*Connection); is && c.Work != nil {
			c.Work.states()
			for _, im := range []*Image{c.Work.Own, c.Work.Shared} {
				im.each(func(im *Image) { im.works((*Work).states) })
			}
		}
	}
}

func (w *Work) states() { w.States = during(w.agent.spells.all, w.of.fact.When) }

// meanwhile lists, longest first, what the agent of c did during it, and what is not c's own.
func (c *Connection) meanwhile(now int64) (all []Meanwhile) {
	type part struct {
		*deed
		Interval
	}
	var some []part
	deeds := c.Work.agent.deeds
	for i := range deeds {
		when := deeds[i].when(now)
		when.Start, when.End = max(when.Start, c.fact.When.Start), min(when.End, c.fact.When.End)
		if when.took() > 0 && !deeds[i].only(c) {
			some = append(some, part{&deeds[i], when})
		}
	}
	slices.SortStableFunc(some, func(a, b part) int { return cmp.Compare(b.took(), a.took()) })
	for _, d := range some[:min(len(some), meanwhileMax)] {
		all = append(all, d.seen(c, d.Interval))
	}
	return all
}

// only reports whether a deed is known to be of a connection's call.
func (d *deed) only(c *Connection) bool {
	return len(d.claim.others) == 0 && !d.claim.Periodic && d.claim.first.Work.own.call == c.Work.own.call
}

// seen is a deed as seen from a connection.
func (d *deed) seen(c *Connection, when Interval) Meanwhile {
	m := Meanwhile{
		When: when, Image: d.image, Fact: d.fact, Perhaps: d.claim.nobodys,
		Attribution: Attribution{Evidence: d.claim.Evidence, Periodic: d.claim.Periodic},
	}
	var others []*Connection
	for _, of := range append([]*Connection{d.claim.first}, d.claim.others...) {
		if of.Work.own.call == c.Work.own.call {
			m.Perhaps = true
		} else {
			others = append(others, of)
		}
	}
	m.Others = keysOf(others)
	return m
}
