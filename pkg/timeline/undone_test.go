package timeline

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

// If a runtime removes a network at once, or before NRI reported the sandbox, the sandbox failed, although every plugin
// succeeded.
func TestANetworkThatIsUndone(t *testing.T) {
	good := func(s *story) *story { return s.plugin(100, "a", "ADD", "bridge").exit(200, "a") }
	for name, test := range map[string]struct {
		tell func(*story)
		want int64
	}{
		"at once": {func(s *story) { good(s).plugin(210, "b", "DEL", "bridge").exit(220, "b") }, 210},
		"later":   {func(s *story) { good(s).plugin(400, "b", "DEL", "bridge").exit(420, "b") }, 0},
		"after a failure": {func(s *story) {
			s.plugin(100, "a", "ADD", "bridge").exit(200, "a", 1).plugin(210, "b", "DEL", "bridge").exit(220, "b")
		}, 0},
		"of a sandbox that ran": {func(s *story) {
			good(s).at(205, &event.Sandbox{Phase: event.SandboxRunning, ID: "c1"}).plugin(210, "b", "DEL", "bridge").exit(220, "b")
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			test.tell(s)
			s.tick(60_000)
			var got int64
			for _, op := range s.closed {
				if op.Kind == model.Setup {
					got = op.Calls[0].Undone / 1_000_000
				}
			}
			if got != test.want {
				t.Errorf("undone at %d, want %d", got, test.want)
			}
		})
	}
}
