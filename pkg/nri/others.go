package nri

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/event"
)

// Other is another NRI plugin.
type Other struct {
	event.Actor
	Start       int64
	Read, Wrote uint64
	Unread      bool
	socket      uint64 // inode
}

type awaited struct {
	mu      sync.Mutex
	seen    map[string]*looks
	done    map[string]bool
	looking bool
	alone   bool
	at      int64 // last look

	listing sync.Mutex
	listed  []Other
	since   int64
}

const (
	awaitedMax   = 1024
	awaitedAfter = 150 * time.Millisecond
	looksMax     = 100
)

type looks struct {
	n       int
	delayed bool
	late    bool
	since   int64 // first call
	called  bool  // possibly
	quiet   int64 // last look before
	plugins map[uint32]*looked
}

type looked struct {
	Other
	last, took int // look of its latest call; looks until its next write
	first      int
	at, since  int64
	before     int64 // the at before
	wrote      bool
	asked      bool
}

// Awake looks when the ADD begins.
func (p *Plugin) Awake(id string) { p.await(id, 0) }

// Await looks while a report is late.
func (p *Plugin) Await(id string) { p.await(id, awaitedAfter) }

// Removing looks until a removal is reported.
func (p *Plugin) Removing(id string) { p.awaitEnd(string(event.SandboxRemoved) + id) }

func (p *Plugin) awaitEnd(key string) {
	p.Awake(key)
	p.Await(key)
	p.awaited.mu.Lock()
	defer p.awaited.mu.Unlock()
	delete(p.awaited.done, key)
}

func (p *Plugin) await(id string, after time.Duration) {
	a := &p.awaited
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.options.Plugins == nil || !p.connected.Load() || a.done[id] {
		return
	}
	l := a.seen[id]
	if after == 0 && (l != nil || a.aloneFor(time.Second)) {
		return
	}
	if l == nil {
		if len(a.seen) >= awaitedMax {
			p.unlooked.Add(uint64(len(a.seen)))
			clear(a.seen)
		}
		l = &looks{}
		a.seen[id] = l
	}
	if after == 0 {
		go p.look(func(one *looks) bool { return one == l })
		return
	}
	time.AfterFunc(after, func() { p.delayed(id, l) })
}

func (p *Plugin) delayed(id string, l *looks) {
	a := &p.awaited
	a.mu.Lock()
	l.delayed = a.seen[id] == l
	first := l.delayed && !a.looking
	a.looking = a.looking || first
	a.mu.Unlock()
	if first {
		p.lookAgain()
	}
}

func (p *Plugin) lookAgain() {
	a := &p.awaited
	a.mu.Lock()
	a.looking = false
	for _, l := range a.seen {
		a.looking = a.looking || l.delayed && l.n < looksMax
	}
	again, alone := a.looking, a.aloneFor(3*awaitedAfter)
	a.mu.Unlock()
	if again && !alone {
		p.look(func(l *looks) bool { return l.delayed })
	}
	if again {
		time.AfterFunc(awaitedAfter, p.lookAgain)
	}
}

func (a *awaited) aloneFor(d time.Duration) bool { return a.alone && clock.Monotonic()-a.at < int64(d) }

func (p *Plugin) look(wants func(*looks) bool) {
	now, at, ok := p.others(clock.Monotonic())
	p.awaited.mu.Lock()
	defer p.awaited.mu.Unlock()
	p.awaited.alone = ok && len(now) == 0
	if !ok {
		return
	}
	p.awaited.at = at
	for _, l := range p.awaited.seen {
		if wants(l) && l.n < looksMax {
			l.add(now)
			l.late = l.delayed
			if l.called = l.called || len(p.awaited.seen) > 1; l.late && !l.called {
				l.quiet = at
			}
		}
	}
}

func (l *looks) add(now []Other) {
	if l.n++; l.plugins == nil {
		l.plugins = map[uint32]*looked{}
		l.called = l.delayed
	}
	for _, o := range now {
		k := l.plugins[o.PID]
		l.called = l.called || o.Unread || k == nil && l.n > 1 || k != nil && (o.Wrote != k.Wrote || o.Read != k.Read)
		if k == nil {
			l.plugins[o.PID] = &looked{Other: o, first: l.n, since: clock.Monotonic()}
			continue
		}
		if o.Wrote != k.Wrote {
			k.wrote = l.late
			if k.last == 0 && o.Read == k.Read {
				k.last, k.at = k.first, k.since
				l.quiet = 0
			}
			if took := l.n - k.last; k.last != 0 && took > k.took {
				k.took, k.since = took, k.at
			}
		}
		if o.Wrote != k.Wrote || o.Read != k.Read {
			k.last, k.before, k.at = l.n, k.at, clock.Monotonic()
		}
		k.asked = k.asked || l.quiet != 0 && o.Read != k.Read
		k.Other = o
	}
}

// others lists again only after since.
func (p *Plugin) others(since int64) (all []Other, at int64, ok bool) {
	a := &p.awaited
	a.listing.Lock()
	defer a.listing.Unlock()
	if a.since == 0 || a.since < since {
		at = clock.Monotonic()
		if all, ok = p.options.Plugins(int(p.runtimePID.Load())); !ok {
			p.unlooked.Add(1)
			return nil, 0, false
		}
		a.listed, a.since = all, at
	}
	return a.listed, a.since, true
}

func (p *Plugin) alone(l *looks) bool {
	p.awaited.mu.Lock()
	defer p.awaited.mu.Unlock()
	return p.awaited.alone && l != nil && l.late && l.n < looksMax && len(l.plugins) == 0
}

func (p *Plugin) take(id string, start bool) *looks {
	p.awaited.mu.Lock()
	defer p.awaited.mu.Unlock()
	seen, is := p.awaited.seen[id]
	delete(p.awaited.seen, id)
	if len(p.awaited.done) >= awaitedMax {
		clear(p.awaited.done)
	}
	if start || !is {
		p.awaited.done[id] = true
	}
	return seen
}

// end names plugins delayed least looks.
func (l *looks) end(now []Other, alive func(Other) bool, least int) (all []event.Actor) {
	if l == nil {
		l = &looks{}
	}
	l.add(now)
	most, wrote := 0, 0
	for _, k := range l.plugins {
		if !k.asked { // recv(2) does not count
			l.quiet = 0
		}
		most = max(most, k.took)
		if k.wrote {
			wrote++
		}
	}
	for _, o := range now {
		if k := l.plugins[o.PID]; k.wrote && k.took >= least && (wrote == 1 || most > 0 && k.took >= (most+1)/2) {
			o.State, l.since = event.NRIAnswered, earlier(l.since, k.since)
		}
		delete(l.plugins, o.PID)
		all = append(all, o.Actor)
	}
	for _, pid := range slices.Sorted(maps.Keys(l.plugins)) {
		k := l.plugins[pid]
		k.State, l.quiet = event.NRICut, 0
		if !alive(k.Other) {
			k.State = event.NRIExited
		}
		if k.last == l.n-1 { // closing
			k.at = k.before
		}
		l.since = earlier(l.since, max(k.at, k.since))
		all = append(all, k.Actor)
	}
	return all
}

func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
