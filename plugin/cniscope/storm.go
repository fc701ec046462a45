package main

import (
	"log/slog"
	"sync/atomic"

	"github.com/cniscope/cniscope/pkg/pipeline"
)

// storm reports after a burst how many operations lost their detail to sampling.per_second, in one line. One goroutine
// takes results and the time, others ask.
type storm struct {
	reduced  atomic.Int64
	problems int   // of these, slow, failed or hung
	last     int64 // when the last of them ended, in monotonic ns
}

// is reports whether a line is due once the burst is over.
func (s *storm) is() bool { return s.reduced.Load() > 0 }

func (s *storm) take(r *pipeline.Judged, now int64) {
	if !r.Judgement.Reduced {
		return
	}
	s.reduced.Add(1)
	s.last = now
	if r.Judgement.Problem() != "" {
		s.problems++
	}
}

// tick logs the line when no operation was reduced for calmFor.
func (s *storm) tick(now int64, log *slog.Logger) {
	if !s.is() || now-s.last < int64(calmFor) {
		return
	}
	log.Info("operations in a burst were exported without the spans below their calls; sampling.per_second allows more",
		"operations", s.reduced.Load(), "slow_or_failed", s.problems, "metric", `cniscope_operations_total{decision="reduced"}`)
	s.reduced.Store(0)
	s.problems = 0
}
