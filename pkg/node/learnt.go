package node

import (
	"context"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// learntPatience bounds the wait for a disk at exit; learntPace is the interval of writes.
	learntPatience = 2 * time.Second
	learntPace     = 5 * time.Minute
)

func (n *node) usually() *baseline.Document {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.pipeline.Judge.Baseline {
		return (&baseline.Book{}).Document()
	}
	return n.pipeline.Usual.Document()
}

func (n *node) leaveLearnt(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, learntPatience)
	defer cancel()
	n.learnt.Save(ctx, n.usually())
}

func (n *node) beginLearning() {
	kept := n.learnt.Load() // unlocked: a disk may hang
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pipeline.Usual.Len() == 0 {
		n.pipeline.Usual = kept.Book()
	}
}

func (n *node) keepLearnt(ctx context.Context) {
	for n.learnt.Keeps() && clock.Wait(ctx, learntPace) {
		n.learnt.Save(ctx, n.usually())
	}
}

func (n *node) reportUsual(result pipeline.Result) {
	r, is := result.(*pipeline.Judged)
	if !is {
		return
	}
	for _, f := range r.Judgement.Findings {
		fields := []any{
			"node", n.name, "plugin", f.Plugin, "network", f.Network, "call", f.Command,
			"since", time.Unix(0, f.Since).UTC().Format(time.RFC3339), "verdict", f.String(),
			"median", text.Round(f.Is.Median), "before", text.Round(f.Was.Median),
		}
		if f.Key.Program != "" {
			fields = append(fields, "command", f.Key.Program)
		}
		switch f.Kind {
		case baseline.Slower:
			n.log.Warn("slower than usual", fields...)
		case baseline.Changed:
			n.log.Warn("a plugin or its configuration changed", fields...)
		case baseline.AsUsual:
			n.log.Info("as fast as usual again", fields...)
		case baseline.Ended:
			n.log.Info("slower than usual no longer", fields...)
		case baseline.Adopted:
			n.log.Info("baseline now has the slower durations", fields...)
		}
	}
}
