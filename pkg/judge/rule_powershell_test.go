package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

func TestPowerShell(t *testing.T) {
	rulings(t, map[string]ruling{
		"an agent starts it, twice": {
			op: add(seen(plugin("antrea", 0, 4500), dialled("unix", "/run/a.sock", from(10, 4400),
				served([]*model.Image{ran("powershell.exe", 20, 2100), ran("ovs-vsctl", 2100, 2150), ran("powershell.exe", 2150, 4300)}, nil)))),
			cause: CausePowerShell, says: `^4\.23s of 4\.5s: agentd at /run/a\.sock ran powershell\.exe \(2 times\), while plugin antrea waited$`,
			remedy: `HCN`, report: "antrea-io/antrea#4859",
		},
		"control: the agent of another plugin, which calls itself Antrea's": {
			op: add(seen(plugin("p", 0, 4500), dialled("unix", "/run/a.sock", from(10, 4400),
				served([]*model.Image{ran("powershell.exe", 20, 4300)}, nil), func(c *model.Connection) { c.Agent.Name = "antrea-agent" }))),
			cause: CausePowerShell, says: `antrea-agent at /run/a\.sock ran powershell`, remedy: `HCN`, report: "-",
		},
		"control: what nobody knows for whom it was started": {
			op: add(seen(plugin("antrea", 0, 4500), dialled("unix", "/run/a.sock", from(10, 4400),
				served(nil, []*model.Image{ran("powershell.exe", 20, 2100)})))),
			cause: CauseAgent,
		},
	})
}
