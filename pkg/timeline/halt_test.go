package timeline

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
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
	s.exit(500, "b").tick(2000)
	var got []model.Fact
	for f, h := range model.Each[*model.Halt](s.closed[0].Calls[0].Runs[0].Facts) {
		got = append(got, model.Fact{When: f.When, What: &model.Halt{State: h.State, By: h.By}})
	}
	want := []model.Fact{
		{When: model.Interval{Start: 75 * ms, End: 175 * ms}, What: &model.Halt{State: event.AgentStopped, By: ""}},
		{When: model.Interval{Start: 175 * ms, End: 225 * ms}, What: &model.Halt{State: event.AgentFrozen, By: "/f"}},
		{When: model.Interval{Start: 350 * ms, End: 500 * ms}, What: &model.Halt{State: event.AgentStopped, By: ""}},
	}
	if len(got) != len(want) {
		t.Fatalf("%d times, want %d", len(got), len(want))
	}
	for i, f := range got {
		if f.When != want[i].When || *f.What.(*model.Halt) != *want[i].What.(*model.Halt) {
			t.Errorf("%+v %+v, want %+v", f.When, f.What, want[i].When)
		}
	}
}
