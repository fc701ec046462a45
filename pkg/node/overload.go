package node

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

// burst is the consumer that logs, in one line after a burst, how many operations lost their detail to
// sampling.per_second.
type burst struct {
	episode
	log      *slog.Logger
	reduced  int
	problems int // of these, slow, failed or hung
}

// Wants ticks.
func (b *burst) Wants(body event.Body) bool {
	_, is := body.(*event.Tick)
	return is
}

// Result counts an operation that was reduced. It came with the latest tick.
func (b *burst) Result(r pipeline.Result) {
	judged, is := r.(*pipeline.Judged)
	if !is || !judged.Judgement.Reduced {
		return
	}
	b.sign(b.now.Load())
	b.reduced++
	if judged.Judgement.Problem() != "" {
		b.problems++
	}
}

// Event logs the line when no operation was reduced for calmFor.
func (b *burst) Event(e event.Event) {
	b.passed(e.Time)
	if _, over := b.over(e.Time); !over {
		return
	}
	b.log.Info("operations in a burst were exported without the spans below their calls; sampling.per_second allows more",
		"operations", b.reduced, "slow_or_failed", b.problems, "metric", `cniscope_operations_total{decision="reduced"}`)
	b.reduced, b.problems = 0, 0
}
