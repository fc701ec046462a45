package node

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
)

// What doctor says of a failed call names the plugin that failed, wherever it stands in the chain.
func TestAFailureNamesThePluginThatFailed(t *testing.T) {
	run := func(plugin string, code uint32, below ...*model.Image) *model.Image {
		return &model.Image{Run: &model.Run{Plugin: plugin, Command: "ADD"}, Exit: model.Exit{Code: code}, Children: below}
	}
	for want, runs := range map[string][]*model.Image{
		"bridge":  {run("bridge", 1)},
		"dhcp":    {run("bridge", 1, run("dhcp", 1))},
		"portmap": {run("bridge", 0), run("portmap", 1)},
		"tuning":  {run("tuning", 0), run("policy", 0)}, // the runtime failed
		"absent":  {run("ptp", 0)},
	} {
		call := &model.Call{Command: "ADD", Network: "pods", Runs: runs}
		switch want {
		case "tuning":
			call.Undone = 1
		case "absent":
			call.NeverRun = []string{"absent", "tuning"}
		}
		var m recent
		op := &model.Operation{Calls: []*model.Call{call}}
		m.take(&pipeline.Judged{Operation: op, Judgement: judge.Options{}.Judge(op)})
		if got := m.list().Failures; len(got) != 1 || got[0].Plugin != want {
			t.Errorf("%+v, want %s", got, want)
		}
	}
}
