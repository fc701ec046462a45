package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// A kind of fact that is added to the timeline must not be forgotten here.
func TestEveryKindOfFactIsCharged(t *testing.T) {
	joined := map[timeline.FactKind]bool{timeline.FactSleep: true, timeline.FactPoll: true}
	for kind := range timeline.FactKinds {
		if c := chargings[kind]; (c.part == nil) != joined[kind] {
			t.Errorf("kind %d of facts has the rank %d, and no part: %v", kind, c.rank, c.part == nil)
		}
	}
}
