// Package usual learns how long the plugins of a node, and the commands that they run, take as a rule, and tells
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
// before.
package usual

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
	// Keys is how many are known at once. For another one the one that was not seen for longest is forgotten.
	Keys = 128

	window = 20 // the last calls that are looked at
	begins = 5  // of these above the usual
	ends   = 1  // of these above the usual at most

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
	known map[Key]*entry
	calls uint64 // that were taken
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
	// before is the edition before, until Compared calls of this one are known; Calls is 0 if there was none.
	before Level
	was    Edition

	used uint64 // the last call, by Book.calls
}

type seen struct {
	took  time.Duration
	above bool
}

// Take compares a call with what is usual, and learns from it. What takes no longer than floor is never above.
func (b *Book) Take(c Call, floor time.Duration) (a Answer) {
	e := b.entry(c)
	e.turn(c)
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
		a.Findings = append(a.Findings, Finding{Kind: Slower, Key: c.Key, Since: c.At, Was: a.Usual, Is: e.last()})
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
func (b *Book) entry(c Call) *entry {
	e := b.known[c.Key]
	if e == nil {
		if b.known == nil {
			b.known = map[Key]*entry{}
		}
		if len(b.known) >= Keys {
			delete(b.known, b.byUse()[0])
		}
		e = &entry{edition: c.Edition, since: c.At}
		b.known[c.Key] = e
	}
	b.calls++
	e.used = b.calls
	return e
}

// byUse lists the keys, the one that was not seen for longest first.
func (b *Book) byUse() []Key {
	return slices.SortedFunc(maps.Keys(b.known), func(x, y Key) int { return cmp.Compare(b.known[x].used, b.known[y].used) })
}

// turn begins anew where the call is of another edition.
func (e *entry) turn(c Call) {
	now := Edition{cmp.Or(c.Build, e.edition.Build), cmp.Or(c.Configuration, e.edition.Configuration)}
	was := e.edition
	e.edition = now
	if was.Build != "" && was.Build != now.Build || was.Configuration != "" && was.Configuration != now.Configuration {
		before, of := e.before, e.was
		if l := e.whole(); l.Calls >= Compared {
			before, of = l, was
		}
		*e = entry{edition: now, since: c.At, before: before, was: of, used: e.used}
	}
}

// whole is all that is known of an edition, the last calls included.
func (e *entry) whole() Level {
	all := e.learnt.copy()
	for _, s := range e.recent {
		all.add(s.took)
	}
	return all.level()
}

// last is the level of the last calls.
func (e *entry) last() Level {
	var s sketch
	for _, r := range e.recent {
		s.add(r.took)
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
	if e.before.Calls == 0 || e.learnt.calls+len(e.recent) < Compared {
		return f, false
	}
	f = Finding{
		Kind: Changed, Key: k, Since: e.since, Was: e.before, Is: e.whole(),
		Program:       e.was.Build != "" && e.was.Build != e.edition.Build,
		Configuration: e.was.Configuration != "" && e.was.Configuration != e.edition.Configuration,
	}
	e.before, e.was = Level{}, Edition{}
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
			usual = e.whole()
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

// Slower is how many keys are slower than usual now.
func (b *Book) Slower() (n int) {
	for _, e := range b.known {
		if e.spell {
			n++
		}
	}
	return n
}
