package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

func TestSlowCommand(t *testing.T) {
	rulings(t, map[string]ruling{
		"a command of a plugin, and what it ran": {
			op:    add(plugin("p", 0, 1000, ran("policyctl", 10, 900, ran("sleep", 20, 890)))),
			cause: CauseCommand, says: `^890ms of 1s in policyctl > sleep, by plugin p$`, remedy: `^take the sleep out of policyctl`,
		},
		"a command of an agent": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{ran("Get-NetAdapter", 10, 900)}, nil)))),
			cause: CauseCommand, says: `^890ms of 1s in Get-NetAdapter, by agentd at /run/a\.sock while plugin p called it`, report: "antrea-io/antrea#4859",
		},
		"control: it is soon over": {op: add(with(plugin("p", 0, 1000, ran("ip", 10, 20)), cpu(1000))), cause: CausePlugin},
	})
}
