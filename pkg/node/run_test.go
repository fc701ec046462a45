package node

import (
	"log/slog"
	"testing"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// A quiet node has no events; its options change all the same.
func TestOptionsAreAppliedWithoutAnEvent(t *testing.T) {
	level := &slog.LevelVar{}
	o := config.Default()
	n := harness.Must(newNode(o, "test", slog.New(slog.DiscardHandler), level))(t)
	defer n.close(t.Context(), false)
	o.Log.Level = "debug"
	for _, o.Sampling.Ratio = range []float64{0.1, 0.2, 0.3} {
		n.apply(o)
	}
	harness.Equal(t, level.Level(), slog.LevelDebug, "the level is")
	n.take(event.Event{Body: &event.Tick{}})
	if n.pipeline.Judge.Ratio != 0.3 {
		t.Errorf("the ratio is %v, not the last one", n.pipeline.Judge.Ratio)
	}
}
