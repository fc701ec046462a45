// Package baseline learns the normal durations of a node's plugins and their commands, and detects slower ones. It is
// pure.
//
// For each Key it keeps the distribution of the last few thousand calls (DDSketch, quantiles exact to 1 %). A call is
// above the baseline if it exceeds the 99th percentile and a floor. A spell of slowness begins with five such calls
// among the last 20 and ends when one or none is left; for independent calls chance causes one in millions of calls.
//
// A call enters the distribution when it leaves the window of 20, so slow calls do not raise their own percentile.
// Calls of a spell are collected apart: after Adopt calls they become the baseline, else they are discarded. At Most
// calls all weights are halved.
//
// Another edition of the plugin or its configuration starts a new baseline, which is compared once with the former one.
// If the change is undone before that, the former one continues.
package baseline

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// Enough is the number of calls before any counts as slower: of 100 calls the percentile is the second longest.
	Enough = 300
	// Compared is the number of calls of a new edition before the comparison.
	Compared = 50
	// Adopt is the number of calls after which a spell becomes the baseline.
	Adopt = 500
	// Most is the total weight at which all weights are halved.
	Most = 10_000
	// Keys bounds the keys. The least recently used one goes first, among those with few calls, so that invented names
	// displace no other.
	Keys = 128

	stale  = 50_000 // calls after which an unused key loses that protection
	window = 20     // size of the window
	begins = 5      // calls above the baseline that begin a spell
	ends   = 1      // calls above the baseline that still end it

	percentile = 0.99
)

// Key identifies a baseline.
type Key struct {
	Network string `json:"network,omitempty"`
	// Plugin is its type, Command the CNI_COMMAND.
	Plugin  string `json:"plugin"`
	Command string `json:"command"`
	// Program is a command of the plugin; empty for the plugin itself.
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

// Edition identifies a version of a plugin. Empty fields are unknown and match any.
type Edition struct {
	// Build is a fingerprint of the plugin's file, Configuration a digest.
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

// Answer compares a call with the baseline before it.
type Answer struct {
	// Above means longer than Usual.P99 and the floor; Slower, Above during a spell.
	Above    bool
	Slower   bool
	Usual    Level
	Findings []Finding
}

// Book holds a node's baselines. The zero value is empty. Not for concurrent use.
type Book struct {
	known     map[Key]*entry
	calls     uint64 // taken so far
	forgotten uint64 // removed keys
}

type entry struct {
	edition Edition
	since   int64 // first call of this edition, in ns since 1970
	learnt  sketch
	recent  []seen // at most window, oldest first
	// apart collects the calls of a spell.
	spell bool
	apart sketch
	// former is the previous edition until the comparison; nil if there is none.
	former *former

	used uint64 // latest call, by Book.calls
}

// former is the baseline of a replaced edition.
type former struct {
	edition Edition
	since   int64
	learnt  sketch
}

type seen struct {
	took  time.Duration
	above bool
}

// Take compares a call with its baseline and learns from it. A call up to floor is never above.
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

// byUse lists the least recently used key first.
func (b *Book) byUse() []Key {
	return slices.SortedFunc(maps.Keys(b.known),
		func(x, y Key) int { return cmp.Compare(b.known[x].used, b.known[y].used) })
}

// or fills in unknown fields from other.
func (e Edition) or(other Edition) Edition {
	return Edition{cmp.Or(e.Build, other.Build), cmp.Or(e.Configuration, other.Configuration)}
}

// differs reports whether known fields differ.
func (e Edition) differs(other Edition) bool { return e.or(other) != other.or(e) }

// turn starts a new baseline for another edition, or resumes the former one.
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

// ended reports the end of a spell whose baseline is removed.
func (e *entry) ended(k Key, at int64, a *Answer) {
	if e.spell {
		a.Findings = append(a.Findings, Finding{Kind: Ended, Key: k, Since: at, Was: e.learnt.level(), Is: e.last()})
	}
}

// whole includes the window.
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

// slow returns the level of the calls above the baseline.
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
	// Since is the first call of this edition; 0 for another node's baseline.
	Since int64
	// Usual includes the window if there are few calls. Confident means Enough calls.
	Usual     Level
	Confident bool
	// Slower means a spell; Now is the window.
	Slower bool
	Now    Level
}

// Known lists all keys, by network, plugin, command and program.
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

// Slower returns the number of keys in a spell.
func (b *Book) Slower() (n int) {
	for _, e := range b.known {
		if e.spell {
			n++
		}
	}
	return n
}
