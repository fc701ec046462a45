package main

import (
	"log/slog"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/pipeline"
)

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
