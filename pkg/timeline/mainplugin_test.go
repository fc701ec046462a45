package timeline

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestTheMainPluginIsTheSameForEveryCommand(t *testing.T) {
	known := &event.Networks{Networks: []event.Network{{
		Name:    "pods",
		Plugins: []event.Plugin{{Type: "bridge"}, {Type: "portmap"}},
	}}}
	stories{
		"ADD": {func(s *story) {
			s.plugin(10, "a", "ADD", "bridge").exit(20, "a").plugin(21, "b", "ADD", "portmap").exit(30, "b")
		}, "bridge"},
		"DEL": {func(s *story) {
			s.plugin(10, "a", "DEL", "portmap").exit(20, "a").plugin(21, "b", "DEL", "bridge").exit(30, "b")
		}, "bridge"},
		"a DEL that ended early": {func(s *story) {
			s.at(0, known).plugin(10, "a", "DEL", "portmap").exit(20, "a", 1)
		}, "bridge"},
		"a DEL that ended early, of an unknown network": {func(s *story) {
			s.plugin(10, "a", "DEL", "portmap").
				exit(20, "a", 1)
		}, "portmap"},
		"what an agent runs meanwhile counts for nothing": {func(s *story) {
			s.plugin(10, "a", "DEL", "multus-shim").plugin(12, "b", "DEL", "bridge", by("agent")).exit(20, "b").exit(25, "a")
		}, "multus-shim"},
	}.each(t, tell, func(s *story) string { return s.end().closed[0].Calls[0].Main() })
}
