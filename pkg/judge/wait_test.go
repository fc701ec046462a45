package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

// A new kind of fact must have an entry.
func TestEveryKindOfFactIsCharged(t *testing.T) {
	joined := map[model.FactKind]bool{model.FactSleep: true, model.FactPoll: true}
	for kind := range model.FactKinds {
		if c := chargings[kind]; (c.part == nil) != joined[kind] {
			t.Errorf("kind %d of facts has the rank %d, and no part: %v", kind, c.rank, c.part == nil)
		}
	}
}
