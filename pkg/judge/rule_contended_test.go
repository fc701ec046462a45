package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestContended(t *testing.T) {
	rulings(t, map[string]ruling{
		"a burst waits for rtnl": {
			op: but(add(seen(plugin("bridge", 0, 900), asked("RTM_NEWLINK", from(0, 800)), waited(event.WaitMutex, "rtnl", from(10, 790), event.Actor{PID: 7, Name: "bridge", Parent: "containerd"}))),
				func(c *model.Call) { c.Concurrent = 29 }),
			cause: CauseKernelLock, says: `^780ms of 900ms: plugin bridge waited for kernel lock rtnl, held by bridge \(pid 7\); up to 29 other calls were in progress$`, report: "aws/amazon-vpc-cni-k8s#3764",
		},
		"many short waits": {
			op:    add(seen(plugin("bridge", 0, 900), func(im *model.Image) { im.Tallies[model.FactMutex] = model.Tally{Count: 400, Time: 700 * ms} })),
			cause: CauseKernelLock, says: `briefly each time \(400 times\)$`,
		},
		"control: the kernel itself takes long": {
			op: add(seen(plugin("bridge", 0, 900), asked("RTM_NEWLINK", from(0, 800)), waited(event.WaitMutex, "rtnl", from(10, 40)))), cause: CauseNetwork,
		},
	})
}
