package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestHostLocalScan(t *testing.T) {
	rulings(t, map[string]ruling{
		"it opens one file after the other": {
			op:    add(plugin("bridge", 0, 1000, with(seen(plugin("host-local", 10, 950), waited(event.WaitCall, "openat", from(20, 300))), cpu(600)))),
			cause: CauseScan, says: `host-local read one file for each allocated address$`, report: "Azure/azure-container-networking#2817",
		},
		"control: it waits for its disk": {
			op: add(plugin("bridge", 0, 1000, seen(plugin("host-local", 10, 950), waited(event.WaitCall, "fsync", from(20, 900))))), cause: CauseSystemCall,
		},
		"control: nobody knows what it does": {
			op: add(plugin("bridge", 0, 1000, seen(plugin("host-local", 10, 950)))), cause: CauseUnexplained,
		},
		"control: another plugin computes": {
			op: add(plugin("bridge", 0, 1000, with(plugin("ipam", 10, 950), cpu(940)))), cause: CausePlugin,
		},
	})
}
