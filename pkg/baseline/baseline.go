// Package baseline learns the normal durations of plugins and their commands, and detects slower ones. It is pure.
//
// For each Key it keeps the distribution of the last few thousand calls (DDSketch, quantiles exact to 1 %). A call
// is above the baseline if it exceeds the 99th percentile and a floor. A spell of slowness begins with five such
// calls among the last 20 and ends with one or none; independent calls cause one in millions of calls.
//
// Calls enter the distribution on leaving the window of 20, so slow ones do not raise their own percentile. Calls of
// a spell are kept apart, to become the baseline after Adopt calls, or be discarded. At Most calls all weights are
// halved.
package baseline

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// Enough is the calls needed to compare: of 100, the percentile is the second longest.
	Enough = 300
	// Compared is the calls of a new edition before the comparison.
	Compared = 50
	// Adopt is the calls after which a spell becomes the baseline.
	Adopt = 500
	// Most is the weight at which all are halved.
	Most = 10_000
	// Keys bounds the keys. The least recently used with few calls goes first, lest invented names displace others.
	Keys = 128

	stale  = 50_000 // calls until an unused key loses that protection
	window = 20
	begins = 5 // calls above that begin a spell
	ends   = 1 // calls above that still end it

	percentile = 0.99
)

// Key identifies a baseline.
type Key struct {
	Network string `json:"network,omitempty"`
	Plugin  string `json:"plugin"`
	Command string `json:"command"`
	Program string `json:"program,omitempty"`
}

// String returns "bridge ADD", or "iptables of bridge ADD".
func (k Key) String() string {
	s := k.Plugin + " " + k.Command
	if k.Program != "" {
		s = k.Program + " of " + s
	}
	return s
}

// Edition is a version of a plugin. Empty fields match any.
type Edition struct {
	Build         string `json:"build,omitempty"`
	Configuration string `json:"configuration,omitempty"`
}

// Call is a finished call.
type Call struct {
	Key
	Edition
	Took time.Duration
	At   int64
}

// Level describes durations.
type Level struct {
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	Calls  int           `json:"calls"`
}

// Answer compares a call with the earlier baseline.
type Answer struct {
	// Above means over Usual.P99 and the floor; Slower, Above during a spell.
	Above    bool
	Slower   bool
	Usual    Level
	Findings []Finding
}

// Book holds a node's baselines; zero is empty. Not for concurrent use.
type Book struct {
	known     map[Key]*entry
	calls     uint64
	forgotten uint64
}

type entry struct {
	edition Edition
	since   int64 // this edition's first call, ns since 1970
	learnt  sketch
	recent  []seen // up to window, oldest first
	spell   bool
	apart   sketch
	// former is the previous edition until the comparison, or nil.
	former *former

	used uint64
}

type former struct {
	edition Edition
	since   int64
	learnt  sketch
}

type seen struct {
	took  time.Duration
	above bool
}

// Take compares and learns a call. Up to floor it is never above.
func (b *Book) Take(c Call, floor time.Duration) (a Answer) {
	c.Took = min(max(c.Took, 0), longest)
	e := b.entry(c, &a)
	e.turn(c, &a)
	if e.learnt.calls >= Enough {
		a.Above = c.Took > floor && e.learnt.above(c.Took, percentile)
	}
	if a.Above {
		a.Usual = e.learnt.level()
	}
	if len(e.recent) == window {
		e.learn(e.recent[0].took)
		e.recent = slices.Delete(e.recent, 0, 1)
	}
	e.recent = append(e.recent, seen{c.Took, a.Above})
	switch n := e.above(); {
	case !e.spell && n >= begins:
		e.spell = true
		a.Findings = append(a.Findings, Finding{Kind: Slower, Key: c.Key, Since: c.At, Was: a.Usual, Is: e.slow()})
	case e.spell && n <= ends && len(e.recent) == window:
		e.spell, e.apart = false, sketch{}
		a.Findings = append(a.Findings, Finding{Kind: AsUsual, Key: c.Key, Since: c.At, Was: e.learnt.level(), Is: e.last()})
	case e.spell && e.apart.calls >= Adopt:
		a.Findings = append(a.Findings, Finding{
			Kind: Adopted, Key: c.Key, Since: c.At, Was: e.learnt.level(),
			Is: e.apart.level(),
		})
		e.spell, e.learnt, e.apart = false, e.apart, sketch{}
		for i := range e.recent {
			e.recent[i].above = false
		}
	}
	a.Slower = e.spell && a.Above
	if f, ok := e.compare(c.Key); ok {
		a.Findings = append(a.Findings, f)
	}
	return a
}

func (b *Book) entry(c Call, a *Answer) *entry {
	e := b.known[c.Key]
	if e == nil {
		if b.known == nil {
			b.known = map[Key]*entry{}
		}
		if len(b.known) >= Keys {
			b.forget(c.At, a)
		}
		e = &entry{edition: c.Edition, since: c.At}
		b.known[c.Key] = e
	}
	b.calls++
	e.used = b.calls
	return e
}

func (b *Book) forget(at int64, a *Answer) {
	keys := b.byUse()
	which := slices.IndexFunc(keys, func(k Key) bool {
		e := b.known[k]
		return e.learnt.calls < Enough || b.calls-e.used > stale
	})
	k := keys[max(which, 0)]
	b.known[k].ended(k, at, a)
	delete(b.known, k)
	b.forgotten++
}

func (b *Book) byUse() []Key {
	return slices.SortedFunc(maps.Keys(b.known),
		func(x, y Key) int { return cmp.Compare(b.known[x].used, b.known[y].used) })
}

func (e Edition) or(other Edition) Edition {
	return Edition{cmp.Or(e.Build, other.Build), cmp.Or(e.Configuration, other.Configuration)}
}

func (e Edition) differs(other Edition) bool { return e.or(other) != other.or(e) }

func (e *entry) turn(c Call, a *Answer) {
	now := c.or(e.edition)
	if !e.edition.differs(now) {
		e.edition = now
		return
	}
	e.ended(c.Key, c.At, a)
	if f := e.former; f != nil && !f.edition.differs(now) {
		*e = entry{edition: now, since: f.since, learnt: f.learnt, used: e.used}
		return
	}
	before := e.former
	if l := e.settled(); l.calls >= Compared {
		before = &former{e.edition, e.since, l}
	}
	*e = entry{edition: now, since: c.At, former: before, used: e.used}
}

func (e *entry) ended(k Key, at int64, a *Answer) {
	if e.spell {
		a.Findings = append(a.Findings, Finding{Kind: Ended, Key: k, Since: at, Was: e.learnt.level(), Is: e.last()})
	}
}

func (e *entry) whole() sketch {
	all := e.learnt.copy()
	for _, s := range e.recent {
		all.add(s.took)
	}
	return all
}

func (e *entry) settled() sketch {
	if e.spell {
		return e.learnt.copy()
	}
	return e.whole()
}

func (e *entry) last() Level { return levelOf(e.recent) }

func (e *entry) slow() Level {
	return levelOf(slices.DeleteFunc(slices.Clone(e.recent), func(s seen) bool { return !s.above }))
}

func levelOf(calls []seen) Level {
	var s sketch
	for _, c := range calls {
		s.add(c.took)
	}
	return s.level()
}

func (e *entry) learn(took time.Duration) {
	if e.spell {
		e.apart.add(took)
		return
	}
	e.learnt.add(took)
	if e.learnt.calls >= Most {
		e.learnt.halve()
	}
}

func (e *entry) above() (n int) {
	for _, s := range e.recent {
		if s.above {
			n++
		}
	}
	return n
}

func (e *entry) compare(k Key) (f Finding, ok bool) {
	if e.former == nil || e.learnt.calls+len(e.recent) < Compared {
		return f, false
	}
	was, whole := e.former.edition, e.whole()
	f = Finding{
		Kind: Changed, Key: k, Since: e.since, Was: e.former.learnt.level(), Is: whole.level(),
		Program:       was.Build != "" && was.Build != e.edition.Build,
		Configuration: was.Configuration != "" && was.Configuration != e.edition.Configuration,
	}
	e.former = nil
	return f, true
}

// Known is the state of one key.
type Known struct {
	Key
	Edition
	// Since is this edition's first call; 0 for a foreign baseline.
	Since int64
	// Usual includes the window if calls are few. Confident means Enough calls.
	Usual     Level
	Confident bool
	Slower    bool
	Now       Level
}

// Known lists all keys in order.
func (b *Book) Known() (all []Known) {
	for k, e := range b.known {
		usual := e.learnt.level()
		if usual.Calls < Enough && !e.spell {
			whole := e.whole()
			usual = whole.level()
		}
		all = append(all, Known{
			Key: k, Edition: e.edition, Since: e.since, Usual: usual,
			Confident: e.learnt.calls >= Enough, Slower: e.spell, Now: e.last(),
		})
	}
	slices.SortFunc(all, func(x, y Known) int {
		return cmp.Or(cmp.Compare(x.Network, y.Network), cmp.Compare(x.Plugin, y.Plugin), cmp.Compare(x.Command, y.Command),
			cmp.Compare(x.Program, y.Program))
	})
	return all
}

// Len returns the number of keys.
func (b *Book) Len() int { return len(b.known) }

// Forgotten returns the number of removed keys.
func (b *Book) Forgotten() uint64 { return b.forgotten }

// Slower counts keys in a spell.
func (b *Book) Slower() (n int) {
	for _, e := range b.known {
		if e.spell {
			n++
		}
	}
	return n
}
