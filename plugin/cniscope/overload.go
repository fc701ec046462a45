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
	"github.com/cniscope/cniscope/pkg/pipeline"
)

// lagging is how far a tick is behind before that is overload: five ticks.
const lagging = 250 * time.Millisecond

// overload is the consumer that logs when the node's CNI calls have more to tell than is read, or let in: ticks lag, or
// the probe loses events.
type overload struct {
	episode
	log  *slog.Logger
	lag  atomic.Int64
	most int64             // the longest lag since it began
	lost map[string]uint64 // since it began, by reason
}

// report says so in a few words; nothing while there is none.
func (o *overload) report() string {
	since := o.since.Load()
	if since == 0 {
		return ""
	}
	return fmt.Sprintf("overloaded: for %s, ticks lag by %s; what is lost is said on the calls that it touches",
		time.Duration(o.now.Load()-since).Round(time.Second), time.Duration(o.lag.Load()).Round(time.Millisecond))
}

// Wants ticks and losses.
func (o *overload) Wants(body event.Body) bool {
	switch body.(type) {
	case *event.Tick, *event.Lost:
		return true
	}
	return false
}

// Result does nothing.
func (o *overload) Result(pipeline.Result) {}

// Event looks for signs of it, and logs its beginning and its end.
func (o *overload) Event(e event.Event) {
	now, sign, begins := e.Time, false, false
	lost, _ := e.Body.(*event.Lost)
	if tick, is := e.Body.(*event.Tick); is {
		now += tick.Lag
		o.lag.Store(tick.Lag)
		sign = tick.Lag > int64(lagging)
	} else {
		sign = lost.OfProcesses() && !lost.Gone
	}
	o.passed(now)
	if sign {
		if begins = o.sign(now); begins {
			o.most, o.lost = 0, map[string]uint64{}
		}
		if lost != nil {
			o.lost[lost.Reason] += lost.Count
		}
	}
	if !o.Waits() {
		return
	}
	o.most = max(o.most, o.lag.Load())
	if begins {
		o.log.Warn("overloaded: CNI calls have more to tell than is read in time; what is lost is said on the calls that it touches", o.fields()...)
	} else if lasted, over := o.over(now); over {
		o.log.Info("no longer overloaded", append([]any{"after", lasted.Round(time.Millisecond)}, o.fields()...)...)
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
