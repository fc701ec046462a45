package timeline

import (
	"fmt"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// A halt is from the middle between two samples to the middle between two others, or to the process's end.
func TestHalts(t *testing.T) {
	halt := func(s *story, at, since int64, state event.AgentState, by string) {
		s.at(at, &event.Agent{Process: "b", State: state, By: by, Since: since * ms})
	}
	s := tell(t).plugin(0, "b", "ADD", "bridge")
	halt(s, 100, 50, event.AgentStopped, "")
	halt(s, 150, 100, event.AgentStopped, "")
	halt(s, 200, 150, event.AgentFrozen, "/f")
	halt(s, 250, 200, event.AgentRunning, "")
	halt(s, 400, 300, event.AgentStopped, "")
	got := lines(s.exit(500, "b").tick(2000).inside("bridge"), func(h *model.Halt, when model.Interval) string {
		return fmt.Sprintf("%s %d-%d %s", h.State, when.Start/ms, when.End/ms, h.By)
	})
	harness.Equal(t, got, "stopped 75-175 \nfrozen 175-225 /f\nstopped 350-500 ")
}
