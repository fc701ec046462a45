package timeline

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func configured(process, network string) *event.Configuration {
	return &event.Configuration{Process: event.Process(process), Network: network, CNIVersion: "1.0.0"}
}

func TestTheConfigurationNamesTheNetwork(t *testing.T) {
	two := &event.Networks{Networks: []event.Network{
		{Name: "first", Plugins: []event.Plugin{{Type: "bridge"}, {Type: "portmap"}}},
		{Name: "second", Plugins: []event.Plugin{{Type: "bridge"}, {Type: "firewall"}}},
	}}
	stories{
		"where the environment leaves two": {func(s *story) {
			s.at(0, two).plugin(1, "b", "ADD", "bridge").at(2, configured("b", "second")).exit(8, "b", 1).tick(2000)
		}, `setup c1 1-8: settled
  ADD eth0 1-8 network second never run: firewall: bridge ADD 1-8 (exit 1)`},
		"where no file has it": {func(s *story) {
			s.at(0, two).plugin(1, "b", "ADD", "bridge").at(2, configured("b", "mine")).exit(8, "b", 1).tick(2000)
		}, `setup c1 1-8: settled
  ADD eth0 1-8 network mine: bridge ADD 1-8 (exit 1)`},
		"also if a child reads it for the plugin; a delegate's is its own": {func(s *story) {
			s.at(0, two).plugin(1, "b", "ADD", "bridge").command(2, "c", "b", "cat").at(3, configured("c", "first")).
				exit(4, "c").
				command(5, "hl", "b", "host-local", delegate).at(6, configured("hl", "other")).exit(7, "hl").exit(8, "b", 1).
				tick(2000)
		}, `setup c1 1-8: settled
  ADD eth0 1-8 network first never run: portmap: bridge ADD 1-8 (exit 1) [cat 2-4, host-local ADD 5-7]`},
	}.each(t, looked, func(s *story) string { return draw(s.closed) })
}

func TestWhatIsSeenOfACallIsSaid(t *testing.T) {
	s := tell(t).plugin(0, "a", "ADD", "bridge").exit(1, "a").plugin(2, "b", "ADD", "bridge", container("c2")).
		at(3, &event.Detail{On: true}).plugin(4, "c", "ADD", "bridge", container("c3")).exit(5, "b").exit(5, "c").
		at(6, &event.Detail{}).plugin(7, "d", "ADD", "bridge", container("c4")).exit(8, "d").tick(3000)
	for i, want := range []bool{false, true, true, false} {
		harness.Equal(t, s.closed[i].Calls[0].Seen, want, "operation", i, "is seen")
	}
}
