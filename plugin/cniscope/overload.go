package main

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

const (
	// lagging is how far a tick is behind before that is overload: five ticks.
	lagging = 250 * time.Millisecond
	// calmFor is how long there must be no sign of it before it is over: a loss is reported within a tick.
	calmFor = time.Second
)

// overload reports whether the node's CNI calls have more to tell than is read, or let in:
// ticks lag, or the probe loses events. One goroutine takes events, others ask.
type overload struct {
	since atomic.Int64 // when it began, in monotonic ns; 0 while there is none
	now   atomic.Int64
	lag   atomic.Int64

	last, most int64             // its latest sign; the longest lag
	lost       map[string]uint64 // since it began, by reason
}

func (o *overload) is() bool { return o.since.Load() != 0 }

// report says so in a few words; nothing while there is none.
func (o *overload) report() string {
	since := o.since.Load()
	if since == 0 {
		return ""
	}
	return fmt.Sprintf("overloaded: for %s, ticks lag by %s; what is lost is said on the calls that it touches",
		time.Duration(o.now.Load()-since).Round(time.Second), time.Duration(o.lag.Load()).Round(time.Millisecond))
}

// take looks for signs of it in an event, and logs its beginning and its end.
func (o *overload) take(e event.Event, log *slog.Logger) {
	now := e.Time
	sign := false
	switch b := e.Body.(type) {
	case *event.Tick:
		now += b.Lag
		o.lag.Store(b.Lag)
		sign = b.Lag > int64(lagging)
	case *event.Lost:
		sign = b.OfProcesses() && !b.Gone
	default:
		return
	}
	o.now.Store(max(now, o.now.Load()))
	began := sign && !o.is()
	if began {
		o.most, o.lost = 0, map[string]uint64{}
		o.since.Store(now)
	}
	if !o.is() {
		return
	}
	o.most = max(o.most, o.lag.Load())
	if b, ok := e.Body.(*event.Lost); ok && sign {
		o.lost[b.Reason] += b.Count
	}
	if sign {
		o.last = now
	}
	switch {
	case began:
		log.Warn("overloaded: CNI calls have more to tell than is read in time; what is lost is said on the calls that it touches", o.fields()...)
	case now-o.last >= int64(calmFor):
		log.Info("no longer overloaded", append([]any{"after", time.Duration(o.last - o.since.Load()).Round(time.Millisecond)}, o.fields()...)...)
		o.since.Store(0)
	}
}

func (o *overload) fields() []any {
	lost := make([]string, 0, len(o.lost))
	for _, reason := range slices.Sorted(maps.Keys(o.lost)) {
		lost = append(lost, fmt.Sprintf("%d %s", o.lost[reason], reason))
	}
	fields := []any{"lag", time.Duration(o.most).Round(time.Millisecond)}
	if len(lost) > 0 {
		fields = append(fields, "lost", strings.Join(lost, ", "))
	}
	return fields
}
