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

// lagging is the lag of an overloaded probe: five ticks.
const lagging = 250 * time.Millisecond

type overload struct {
	episode
	log  *slog.Logger
	lag  atomic.Int64
	most int64 // longest lag of the episode
	lost map[string]uint64
}

func (o *overload) report() string {
	since := o.since.Load()
	if since == 0 {
		return ""
	}
	return fmt.Sprintf("overloaded: for %s, ticks lag by %s; affected calls are marked incomplete",
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

// calmFor ends an episode: losses are reported each tick.
const calmFor = time.Second

// episode lasts from the first sign until calmFor after the last, and requests ticks. One goroutine sets it, others
// read.
type episode struct {
	since atomic.Int64 // monotonic ns; 0: none
	now   atomic.Int64
	last  int64
}

func (p *episode) Waits() bool { return p.since.Load() != 0 }

func (p *episode) passed(now int64) { p.now.Store(max(now, p.now.Load())) }

func (p *episode) sign(at int64) (begins bool) {
	p.last = at
	return p.since.CompareAndSwap(0, at)
}

func (p *episode) over(now int64) (lasted time.Duration, over bool) {
	since := p.since.Load()
	if since == 0 || now-p.last < int64(calmFor) {
		return 0, false
	}
	p.since.Store(0)
	return time.Duration(p.last - since), true
}

type burst struct {
	episode
	log      *slog.Logger
	reduced  int
	problems int // slow, failed or hung
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
	b.log.Info("burst exported without the spans below calls", "remedy", "raise sampling.per_second",
		"operations", b.reduced, "slow_or_failed", b.problems, "metric", `cniscope_operations_total{decision="reduced"}`)
	b.reduced, b.problems = 0, 0
}
