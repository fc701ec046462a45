package replay

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/test/harness"
)

// A recording of three pods is read, judged, drawn and encoded. The budget is 5 % above the count, which no load moves.
func TestAllocationsForAPodAreWithinTheBudget(t *testing.T) {
	const pods, budget = 3, 27_260
	all := testing.AllocsPerRun(2, func() {
		reader := harness.Must(open(t.Context(), "../../examples/recordings/three-pods.rec"))(t)
		defer reader.Close()
		s := settings.Of(config.Default(), "boot", "test")
		s.Judge.Ratio = 1
		harness.Check(t, Each(t.Context(), reader, s, func(r pipeline.Result) (err error) {
			if all := r.Drawn(); all.Spans != nil {
				_, err = all.Encoded()
			}
			return err
		}))
	})
	if all/pods > budget {
		t.Errorf("%.0f allocations for a pod, budget %d", all/pods, budget)
	}
}
