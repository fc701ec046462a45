package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestStarved(t *testing.T) {
	rulings(t, map[string]ruling{
		"runnable, and no CPU": {
			op:    add(with(seen(plugin("p", 0, 1000, with(ran("iptables", 100, 600), delayed(450)))), delayed(300))),
			cause: CauseStarved, says: `^750ms of 1s waiting for a CPU$`, remedy: `load`,
		},
		"the CPU is not to blame for what others held up": {
			op:    add(with(seen(plugin("p", 0, 1000), waited(event.WaitLock, "/run/l", from(0, 590))), delayed(410))),
			cause: CauseLock, says: `^590ms of 1s waiting for lock`,
		},
		"threads wait side by side, and that counts once": {
			op:    add(with(seen(plugin("p", 0, 1000), waited(event.WaitMutex, "rtnl", from(0, 900))), delayed(5000))),
			cause: CauseKernelLock,
		},
		"control: computing is no waiting": {
			op: add(with(seen(plugin("p", 0, 1000)), cpu(1000))), cause: CausePlugin,
		},
	})
}
