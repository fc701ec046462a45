package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestHostLocalScan(t *testing.T) {
	rulings(t, map[string]ruling{
		"it opens one file after the other": {
			op:    add(plugin("bridge", 0, 1000, with(seen(plugin("host-local", 10, 950), waited(event.WaitCall, "openat", from(20, 300))), cpu(600)))),
			cause: CauseScan, says: `host-local read one file for each allocated address$`, report: "Azure/azure-container-networking#2817",
		},
		"control: it opens a file on a slow disk": {
			op:    add(plugin("bridge", 0, 1000, seen(plugin("host-local", 10, 950), waited(event.WaitCall, "openat", from(20, 900)), leasing("/data/leases")))),
			cause: CauseSystemCall, says: `host-local waited in system call openat, which waited for the file system of /data/leases$`, remedy: `^set dataDir of host-local to a directory on a faster disk`,
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

func leasing(dir string) func(*model.Image) {
	return func(im *model.Image) { im.Run.Configuration = &event.Configuration{DataDir: dir} }
}
