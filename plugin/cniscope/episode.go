package main

import (
	"sync/atomic"
	"time"
)

// calmFor is how long there must be no sign of an episode before it is over: a loss is reported within a tick.
const calmFor = time.Second

// episode is a state of the node that begins with its first sign and is over when none came for calmFor. While it lasts
// the probe sends ticks, by which time passes. One goroutine takes signs and the time, others ask.
type episode struct {
	since atomic.Int64 // when it began, in monotonic ns; 0 while there is none
	now   atomic.Int64
	last  int64 // its latest sign
}

// Waits reports whether it lasts.
func (p *episode) Waits() bool { return p.since.Load() != 0 }

// passed takes the time.
func (p *episode) passed(now int64) { p.now.Store(max(now, p.now.Load())) }

// sign takes a sign of it, and reports whether it begins.
func (p *episode) sign(at int64) (begins bool) {
	p.last = at
	return p.since.CompareAndSwap(0, at)
}

// over ends it if it has been calm, and returns how long it lasted.
func (p *episode) over(now int64) (lasted time.Duration, over bool) {
	since := p.since.Load()
	if since == 0 || now-p.last < int64(calmFor) {
		return 0, false
	}
	p.since.Store(0)
	return time.Duration(p.last - since), true
}
