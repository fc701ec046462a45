package node

import (
	"log/slog"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/node/learned"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/test/harness"
)

// Whether anything is learnt may change while cniscope runs: what was kept is known then, and what is known is kept,
// and recorded.
func TestBaselineIsSwitchedOn(t *testing.T) {
	o := config.Default()
	o.State.Dir, o.Slow.BaselineDir = filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "baseline")
	quiet := slog.New(slog.DiscardHandler)
	var known baseline.Book
	for _, plugin := range []string{"bridge", "portmap", "tuning"} {
		known.Take(baseline.Call{Key: baseline.Key{Plugin: plugin, Command: "ADD"}, Took: 1000}, 0)
	}
	kept := known.Document()
	learned.Open(o, quiet).Save(t.Context(), kept)
	o.Slow.Baseline = false
	n := harness.Must(newNode(o, "test", quiet, &slog.LevelVar{}))(t)
	expect := func(when string, want *baseline.Document, size int) {
		t.Helper()
		var s settings.Settings
		n.consumers.leave(n.join(&stream{}, &s))
		n.leaveLearnt(t.Context())
		if !reflect.DeepEqual(s.Baseline, want) || n.pipeline.Usual.Len() != size || s.Judge.Baseline != (want != nil) {
			t.Errorf("%s %d are known, and recorded are %+v", when, n.pipeline.Usual.Len(), s.Baseline)
		}
		harness.DeepEqual(t, learned.Open(o, quiet).Load(), kept, when, "there is kept")
	}
	expect("switched off", nil, 0)
	o.Slow.Baseline = true
	n.apply(o)
	expect("switched on", kept, 3)
	n.pipeline.Usual.Take(baseline.Call{Key: baseline.Key{Plugin: "flannel", Command: "ADD"}, Took: 1000}, 0)
	kept = n.pipeline.Usual.Document()
	expect("once more is known", kept, 4)
	o.Slow.Baseline = false
	n.apply(o)
	n.pipeline.Usual.Take(baseline.Call{Key: baseline.Key{Plugin: "flannel", Command: "DEL"}, Took: 1000}, 0)
	expect("switched off again", nil, 5)
}

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
