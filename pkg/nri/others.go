package nri

import (
	"sync"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

// Other is another NRI plugin.
type Other struct {
	event.Actor
	Start int64
	Wrote uint64
}

// awaited are sandboxes, with the plugins that delay them.
type awaited struct {
	mu   sync.Mutex
	seen map[string][]Other
	done map[string]bool // before they were awaited
}

const (
	awaitedMax   = 1024
	awaitedAfter = 150 * time.Millisecond
)

// Await looks at other plugins if a report is late.
func (p *Plugin) Await(id string) {
	a := &p.awaited
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.options.Plugins == nil || !p.connected.Load() || a.done[id] {
		delete(a.done, id)
		return
	}
	if len(a.seen) >= awaitedMax { // by failed sandboxes
		clear(a.seen)
	}
	a.seen[id] = nil
	time.AfterFunc(awaitedAfter, func() {
		if p.delayed(id, nil) {
			p.delayed(id, p.others())
		}
	})
}

func (p *Plugin) delayed(id string, others []Other) bool {
	p.awaited.mu.Lock()
	defer p.awaited.mu.Unlock()
	_, is := p.awaited.seen[id]
	if is && others != nil {
		p.awaited.seen[id] = others
	}
	return is
}

func (p *Plugin) others() []Other { return p.options.Plugins(int(p.runtimePID.Load())) }

func (p *Plugin) take(id string) []Other {
	p.awaited.mu.Lock()
	defer p.awaited.mu.Unlock()
	seen, is := p.awaited.seen[id]
	delete(p.awaited.seen, id)
	if len(p.awaited.done) >= awaitedMax {
		clear(p.awaited.done)
	}
	if !is {
		p.awaited.done[id] = true
	}
	return seen
}

func compare(before, now []Other, alive func(Other) bool) (all []event.Actor) {
	known := map[uint32]Other{}
	for _, o := range before {
		known[o.PID] = o
	}
	for _, o := range now {
		one := o.Actor
		if was, is := known[o.PID]; is && was.Wrote != o.Wrote {
			one.State = event.NRIAnswered
		}
		delete(known, o.PID)
		all = append(all, one)
	}
	for _, o := range before {
		if _, lost := known[o.PID]; !lost {
			continue
		}
		state := event.NRICut
		if !alive(o) {
			state = event.NRIExited
		}
		o.State = state
		all = append(all, o.Actor)
	}
	return all
}
