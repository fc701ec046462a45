package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestNetworkConfiguration(t *testing.T) {
	rulings(t, map[string]ruling{
		"the kernel takes long for a request": {
			op: add(seen(plugin("p", 0, 500), asked("RTM_DELLINK", from(10, 480)))), cause: CauseNetwork, says: `^470ms of 500ms in network configuration: RTM_DELLINK of p$`,
		},
		"control: for something else": {op: add(seen(plugin("p", 0, 500), waited(event.WaitCall, "fsync", from(10, 480)))), cause: CauseSystemCall},
	})
}
