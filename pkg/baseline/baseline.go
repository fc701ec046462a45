// Package baseline learns how long the plugins of a node, and the commands that they run, take as a rule, and tells
// when they take longer. It is pure: the same calls in the same order give the same answers.
//
// For each Key it keeps the distribution of the last some thousand calls as a sketch of bounded size (DDSketch:
// quantiles are exact to 1 %). A call is above the usual if it took longer than the 99th percentile, and longer than
// a floor. Five such calls among the last 20 begin a spell of being slower than usual; it ends when one or none
// is left. With calls that are independent of each other that comes by chance once in millions of calls.
//
// A call teaches only when it leaves the window of the last 20, so the first slow ones do not raise the percentile
// that they are measured by. What leaves during a spell is learnt apart: a spell of Adopt calls is the new usual, a
// shorter one is forgotten. At most calls the weights are halved, so that a year ago counts for little.
//
// Another edition of the plugin, or of its network's configuration, begins anew, and is compared once with the one
// before. Until then that one is kept: where a change is undone, all goes on as before.
package baseline

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// Enough is how many calls must be known before any is called slower than usual. With fewer the percentile
	// is a guess: of 100 calls it is the second longest.
	Enough = 300
	// Compared is how many calls of a new edition are compared with the one before.
	Compared = 50
	// Adopt is how many calls a spell has at most. What was so slow for so long is usual.
	Adopt = 500
	// Most is how many calls weigh at most. At this number all weights are halved.
	Most = 10_000
	// Keys is how many are known at once. For another one the one that was not seen for longest is forgotten, first of
	// those of which too little is known: names that somebody makes up drive out no other.
	Keys = 128

	stale  = 50_000 // so many calls after its last one, what is known of a key protects it no more
	window = 20     // the last calls that are looked at
	begins = 5      // of these above the usual
	ends   = 1      // of these above the usual at most

	percentile = 0.99
)

// Key is whose time is learnt.
type Key struct {
	// Network is the name of the CNI network; empty if that is not known.
	Network string `json:"network,omitempty"`
	// Plugin is the plugin's type, Command its CNI_COMMAND.
	Plugin  string `json:"plugin"`
	Command string `json:"command"`
	// Program is a command that the plugin ran; empty for the plugin itself.
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

// Edition is what has to stay the same for a plugin to be the same. An empty field is not known, and no other.
type Edition struct {
	// Build is of the plugin's file, Configuration of its network's.
	Build         string `json:"build,omitempty"`
	Configuration string `json:"configuration,omitempty"`
}

// Call is one that is over.
type Call struct {
	Key
	Edition
	Took time.Duration
	// At is when it ended, in nanoseconds since 1970.
	At int64
}

// Level is how long something takes.
type Level struct {
	// Median and P99 are percentiles of Calls calls.
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	Calls  int           `json:"calls"`
}

// Answer is how a call compares with what was usual before it.
type Answer struct {
	// Above: it took longer than the P99 of Usual and than the floor, and Enough calls are known.
	Above bool
	// Slower: it is Above in a spell of being slower than usual.
	Slower bool
	// Usual is what was known before; only of one that is Above.
	Usual Level
	// Findings are what this call was the last to show.
	Findings []Finding
}

// Book is what is known of a node. The zero value knows nothing. It is not safe for concurrent use.
type Book struct {
	known     map[Key]*entry
	calls     uint64 // that were taken
	forgotten uint64 // keys
}

// entry is what is known of one key.
type entry struct {
	edition Edition
	since   int64 // when this edition was first seen, in ns since 1970
	learnt  sketch
	recent  []seen // at most window, the oldest first
	// spell: it is slower than usual, and apart is what was seen since.
	spell bool
	apart sketch
	// former is the edition before, until Compared calls of this one are known; nil if there was none.
	former *former

	used uint64 // the last call, by Book.calls
}

// former is what is known of an edition that another has followed.
type former struct {
	edition Edition
	since   int64
	learnt  sketch
}

type seen struct {
	took  time.Duration
	above bool
}

// Take compares a call with what is usual, and learns from it. What takes no longer than floor is never above.
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
		a.Findings = append(a.Findings, Finding{Kind: Adopted, Key: c.Key, Since: c.At, Was: e.learnt.level(), Is: e.apart.level()})
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

// entry returns what is known of a call's key, perhaps nothing.
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

// forget makes room for another key.
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

// byUse lists the keys, the one that was not seen for longest first.
func (b *Book) byUse() []Key {
	return slices.SortedFunc(maps.Keys(b.known), func(x, y Key) int { return cmp.Compare(b.known[x].used, b.known[y].used) })
}

// or fills in what is not known of an edition.
func (e Edition) or(other Edition) Edition {
	return Edition{cmp.Or(e.Build, other.Build), cmp.Or(e.Configuration, other.Configuration)}
}

// differs reports whether two editions are known to be different.
func (e Edition) differs(other Edition) bool { return e.or(other) != other.or(e) }

// turn begins anew where the call is of another edition, or goes on with the one before where that is back.
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

// ended tells that a spell is over because what it is measured by goes.
func (e *entry) ended(k Key, at int64, a *Answer) {
	if e.spell {
		a.Findings = append(a.Findings, Finding{Kind: Ended, Key: k, Since: at, Was: e.learnt.level(), Is: e.last()})
	}
}

// whole is all that is known of an edition, the last calls included.
func (e *entry) whole() sketch {
	all := e.learnt.copy()
	for _, s := range e.recent {
		all.add(s.took)
	}
	return all
}

// settled is all that is known of an edition, but for a spell.
func (e *entry) settled() sketch {
	if e.spell {
		return e.learnt.copy()
	}
	return e.whole()
}

// last is the level of the last calls.
func (e *entry) last() Level { return levelOf(e.recent) }

// slow is the level of those of the last calls that were above the usual.
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

// above is how many of the last calls were.
func (e *entry) above() (n int) {
	for _, s := range e.recent {
		if s.above {
			n++
		}
	}
	return n
}

// compare compares an edition with the one before, once.
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

// Known is what is known of one key.
type Known struct {
	Key
	Edition
	// Since is when this edition was first seen, in nanoseconds since 1970; 0 if that was on another node.
	Since int64
	// Usual is of all calls, those included that teach nothing yet. Confident says that Enough are known.
	Usual     Level
	Confident bool
	// Slower: it is slower than usual now, and Now is the level of the last 20 calls.
	Slower bool
	Now    Level
}

// Known lists what is known, by network, plugin, command and program.
func (b *Book) Known() (all []Known) {
	for k, e := range b.known {
		usual := e.learnt.level()
		if usual.Calls < Enough && !e.spell {
			whole := e.whole()
			usual = whole.level()
		}
		all = append(all, Known{Key: k, Edition: e.edition, Since: e.since, Usual: usual, Confident: e.learnt.calls >= Enough, Slower: e.spell, Now: e.last()})
	}
	slices.SortFunc(all, func(x, y Known) int {
		return cmp.Or(cmp.Compare(x.Network, y.Network), cmp.Compare(x.Plugin, y.Plugin), cmp.Compare(x.Command, y.Command), cmp.Compare(x.Program, y.Program))
	})
	return all
}

// Len is how many keys are known.
func (b *Book) Len() int { return len(b.known) }

// Forgotten is how many keys were forgotten for others.
func (b *Book) Forgotten() uint64 { return b.forgotten }

// Slower is how many keys are slower than usual now.
func (b *Book) Slower() (n int) {
	for _, e := range b.known {
		if e.spell {
			n++
		}
	}
	return n
}
