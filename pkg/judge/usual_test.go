package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// The networks of delegated plugins, as of Multus, have their own baselines.
func TestEachNetworkIsLearntApart(t *testing.T) {
	bridge := func(network string) *model.Image {
		im := plugin("bridge", 10, 90)
		im.Run.Configuration = &event.Configuration{Network: network}
		return im
	}
	multus := plugin("multus", 0, 100)
	multus.Run.Configuration = &event.Configuration{Network: "multus"}
	multus.Children = []*model.Image{bridge("pods"), bridge("tenant")}
	op := add(multus)
	op.Calls[0].Network, op.Calls[0].Configured = "multus", "18ac"
	var known baseline.Book
	Options{Thresholds: Thresholds{Baseline: true}}.JudgeBy(&known, op)
	got := map[string]string{}
	for _, k := range known.Known() {
		got[k.Network+" "+k.Plugin] = k.Configuration
	}
	want := map[string]string{"multus multus": "18ac", "pods bridge": "", "tenant bridge": ""}
	harness.Equal(t, len(got), len(want), "known are", got)
	for k, configuration := range want {
		if is, ok := got[k]; !ok || is != configuration {
			t.Errorf("%s is of the configuration %q, known are %v", k, is, got)
		}
	}
}

func TestASpellIsReportedAtItsBegin(t *testing.T) {
	var known baseline.Book
	var found []baseline.Kind
	for n := range int64(baseline.Enough + 40) {
		op := add(plugin("bridge", 0, 100))
		if n > baseline.Enough+20 {
			op = add(plugin("bridge", 0, 3000))
		}
		for _, f := range (Options{Thresholds: Thresholds{Baseline: true}}).JudgeBy(&known, op).Findings {
			found = append(found, f.Kind)
		}
	}
	harness.EqualSlices(t, found, []baseline.Kind{baseline.Slower})
}
