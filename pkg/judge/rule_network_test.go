package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestNetworkConfiguration(t *testing.T) {
	rulings(t, map[string]ruling{
		"the kernel takes long for a request": {
			op: add(seen(plugin("p", 0, 500), asked("RTM_DELLINK", from(10, 480)))), cause: CauseNetwork, says: `^470ms of 500ms: p waited for network configuration RTM_DELLINK$`,
		},
		"control: for something else": {op: add(seen(plugin("p", 0, 500), waited(event.WaitCall, "fsync", from(10, 480)))), cause: CauseSystemCall},
		"an agent of unknown name asks for it": {
			op: add(seen(plugin("p", 0, 500), dialled("unix", "/run/a.sock", from(0, 490), served(nil, nil), func(c *model.Connection) {
				c.Work.Own.Name = ""
				asked("RTM_NEWLINK", from(10, 480))(c.Work.Own)
			}))),
			cause: CauseNetwork,
		},
	})
}
