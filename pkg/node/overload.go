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

// lagging is the lag of a tick from which the probe is overloaded: five ticks.
const lagging = 250 * time.Millisecond

// overload is the consumer that logs when ticks lag or the probe loses events.
type overload struct {
	episode
	log  *slog.Logger
	lag  atomic.Int64
	most int64             // the longest lag since it began
	lost map[string]uint64 // since it began, by reason
}

func (o *overload) report() string {
	since := o.since.Load()
	if since == 0 {
		return ""
	}
	return fmt.Sprintf("overloaded: for %s, ticks lag by %s; what is lost is said on the calls that it touches",
		time.Duration(o.now.Load()-since).Round(time.Second), time.Duration(o.lag.Load()).Round(time.Millisecond))
}

func (o *overload) Wants(body event.Body) bool {
	switch body.(type) {
	case *event.Tick, *event.Lost:
		return true
	}
	return false
}

func (o *overload) Result(pipeline.Result) {}

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
		o.log.Warn("probe overloaded, affected calls are marked incomplete", o.fields()...)
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

// calmFor is the time without a sign after which an episode is over: losses are reported each tick.
const calmFor = time.Second

// episode is a state of the node, from its first sign until calmFor after its last. During it the probe sends ticks.
// One goroutine takes signs and the time, others ask.
type episode struct {
	since atomic.Int64 // when it began, in monotonic ns; 0 while there is none
	now   atomic.Int64
	last  int64 // its latest sign
}

func (p *episode) Waits() bool { return p.since.Load() != 0 }

func (p *episode) passed(now int64) { p.now.Store(max(now, p.now.Load())) }

// sign reports whether the episode begins.
func (p *episode) sign(at int64) (begins bool) {
	p.last = at
	return p.since.CompareAndSwap(0, at)
}

// over ends the episode if it is calm, and returns how long it lasted.
func (p *episode) over(now int64) (lasted time.Duration, over bool) {
	since := p.since.Load()
	if since == 0 || now-p.last < int64(calmFor) {
		return 0, false
	}
	p.since.Store(0)
	return time.Duration(p.last - since), true
}

// burst is the consumer that logs after a burst how many operations lost their detail to sampling.per_second.
type burst struct {
	episode
	log      *slog.Logger
	reduced  int
	problems int // of these, slow, failed or hung
}

func (b *burst) Wants(body event.Body) bool {
	_, is := body.(*event.Tick)
	return is
}

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

func (b *burst) Event(e event.Event) {
	b.passed(e.Time)
	if _, over := b.over(e.Time); !over {
		return
	}
	b.log.Info("operations in a burst were exported without the spans below their calls; sampling.per_second allows more",
		"operations", b.reduced, "slow_or_failed", b.problems, "metric", `cniscope_operations_total{decision="reduced"}`)
	b.reduced, b.problems = 0, 0
}
