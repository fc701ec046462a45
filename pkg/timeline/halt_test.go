package timeline

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

// What a plugin's process is stopped for is from the middle between two samples to the middle between two others, or to its end.
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
	var got []Fact
	for f, h := range Each[*Halt](s.closed[0].Calls[0].Runs[0].Facts) {
		got = append(got, Fact{When: f.When, What: &Halt{h.State, h.By}})
	}
	want := []Fact{
		{When: Interval{75 * ms, 175 * ms}, What: &Halt{event.AgentStopped, ""}},
		{When: Interval{175 * ms, 225 * ms}, What: &Halt{event.AgentFrozen, "/f"}},
		{When: Interval{350 * ms, 500 * ms}, What: &Halt{event.AgentStopped, ""}},
	}
	if len(got) != len(want) {
		t.Fatalf("%d times, want %d", len(got), len(want))
	}
	for i, f := range got {
		if f.When != want[i].When || *f.What.(*Halt) != *want[i].What.(*Halt) {
			t.Errorf("%+v %+v, want %+v", f.When, f.What, want[i].When)
		}
	}
}
