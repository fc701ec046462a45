package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// matter is a call as the rules see it.
type matter struct {
	call *timeline.Call
	*Call
	ledger
	ran []*program // once it was asked for
}

// of adds up the parts of some kinds, and returns the largest of them.
func (m *matter) of(kinds ...PartKind) (sum time.Duration, largest *Part) {
	for i := range m.Parts { // largest first
		if p := &m.Parts[i]; slices.Contains(kinds, p.Kind) {
			sum += p.Time
			if largest == nil {
				largest = p
			}
		}
	}
	return sum, largest
}

// image is whose wait it is.
func (m *matter) image(w *wait) *timeline.Image { return m.spans[w.span].image }

// waited adds up what was charged to some waits, and returns the longest of them.
func (m *matter) waited(those func(*wait) bool) (sum time.Duration, longest *wait, n int) {
	for i := range m.waits {
		w := &m.waits[i]
		if w.own <= 0 || !those(w) {
			continue
		}
		sum += time.Duration(w.own)
		n++
		if longest == nil || w.own > longest.own {
			longest = w
		}
	}
	return sum, longest, n
}

// program is what a plugin ran, or a server on behalf of one, by the name it called it:
// with all that this ran in its turn.
type program struct {
	name string
	// by is the connection to the server that ran it; nil if a plugin did.
	by      *timeline.Connection
	plugin  string // the plugin that ran it, or called the server
	time    time.Duration
	runs    int
	longest time.Duration // of one run, while it was waited for
	// inner is what it ran that took most; empty if that is itself.
	inner string

	within map[string]int64 // what it and all that it ran took, by name
}

// programs lists those that were waited for, longest first.
func (m *matter) programs() []*program {
	if m.ran == nil {
		m.ran = m.listPrograms()
	}
	return m.ran
}

func (m *matter) listPrograms() (all []*program) {
	type key struct {
		name, plugin string
		agent, at    string
	}
	index := map[key]*program{}
	of := make([]*program, len(m.spans)) // by the place of the outermost image
	runs := make([]int64, len(m.spans))  // how long each was waited for
	for i := range m.spans {
		s := &m.spans[i]
		if s.top < 0 {
			continue
		}
		p := of[s.top] // parents come before children
		if p == nil {
			k := key{name: s.image.Name, plugin: s.plugin}
			if s.served != nil {
				if k.at = s.served.Address; s.served.Server != nil {
					k.agent = s.served.Server.Name
				}
			}
			if p = index[k]; p == nil {
				p = &program{name: s.image.Name, plugin: s.plugin, by: s.served, within: map[string]int64{}}
				index[k] = p
				all = append(all, p)
			}
			of[s.top] = p
			p.runs++
		}
		runs[s.top] += s.own
		p.time += time.Duration(s.own)
		p.longest = max(p.longest, time.Duration(runs[s.top]))
		p.within[s.image.Name] += s.own
	}
	for _, p := range all {
		most := p.name
		for name, own := range p.within {
			if own > p.within[most] || own == p.within[most] && most != p.name && name < most {
				most = name
			}
		}
		if most != p.name {
			p.inner = most
		}
	}
	slices.SortStableFunc(all, func(a, b *program) int { return cmp.Compare(b.time, a.time) })
	return all
}
