package judge

import (
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// matter is a call as the rules see it.
type matter struct {
	call *timeline.Call
	*Call
	ledger
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
}

// programs lists those that were waited for, longest first.
func (m *matter) programs() (all []*program) {
	type key struct{ name, plugin, peer string }
	index := map[key]*program{}
	inner := map[*program]map[string]int64{}
	runs := map[int]int64{} // by the place of the outermost image
	for i := range m.spans {
		s := &m.spans[i]
		if s.top < 0 {
			continue
		}
		top := m.spans[s.top].image
		k := key{name: top.Name, plugin: s.plugin}
		if s.served != nil {
			k.peer = Peer(s.served)
		}
		p := index[k]
		if p == nil {
			p = &program{name: top.Name, plugin: s.plugin, by: s.served}
			index[k], inner[p] = p, map[string]int64{}
			all = append(all, p)
		}
		runs[s.top] += s.own
		p.time += time.Duration(s.own)
		p.longest = max(p.longest, time.Duration(runs[s.top]))
		inner[p][s.image.Name] += s.own
		if i == s.top {
			p.runs++
		}
	}
	for _, p := range all {
		for name, own := range inner[p] {
			if own > inner[p][p.name] && (p.inner == "" || own > inner[p][p.inner] || own == inner[p][p.inner] && name < p.inner) {
				p.inner = name
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *program) int { return int(b.time - a.time) })
	return all
}

// took is how long an image was there.
func took(im *timeline.Image) time.Duration { return time.Duration(im.End - im.Start) }
