package judge

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestWhatIsSlowInside(t *testing.T) {
	options := Options{Thresholds{Agent: 50 * time.Millisecond, Lock: 20 * time.Millisecond}, Sampling{Keep: []Reason{Slow}}}
	// served is a call of an agent that waits for a lock.
	served := func(lock model.Interval) func(*model.Image) {
		return func(im *model.Image) {
			called(from(10, 40))(im)
			own := seen(ran("agentd", 10, 40), waited(event.WaitLock, "/run/l", lock))
			connected(im).Work = &model.Work{Own: own, Shared: ran("agentd", 10, 40)}
		}
	}
	for name, test := range map[string]struct {
		run  *model.Image
		want string
	}{
		"an agent that answers in time":            {seen(plugin("p", 0, 100), called(from(10, 60))), "0 agents, 0 locks"},
		"an agent that does not":                   {seen(plugin("p", 0, 100), called(from(10, 61))), "1 agents, 0 locks"},
		"that of a command":                        {plugin("p", 0, 100, seen(ran("c", 0, 100), called(from(10, 61)))), "1 agents, 0 locks"},
		"a connection that stays open":             {seen(plugin("p", 0, 40), called(from(10, 900))), "0 agents, 0 locks"},
		"a lock that is had soon":                  {seen(plugin("p", 0, 100), waited(event.WaitLock, "/run/l", from(10, 30))), "0 agents, 0 locks"},
		"a lock on a file":                         {seen(plugin("p", 0, 100), waited(event.WaitLock, "/run/l", from(10, 31))), "0 agents, 1 locks"},
		"a lock of the kernel":                     {seen(plugin("p", 0, 100), waited(event.WaitMutex, "rtnl", from(10, 31))), "0 agents, 1 locks"},
		"another wait":                             {seen(plugin("p", 0, 100), waited(event.WaitCall, "read", from(10, 90))), "0 agents, 0 locks"},
		"a lock that the agent waits for":          {seen(plugin("p", 0, 100), served(from(10, 31))), "0 agents, 1 locks"},
		"a lock that the agent waits for, shortly": {seen(plugin("p", 0, 100), served(from(10, 29))), "0 agents, 0 locks"},
	} {
		op := add(test.run)
		j := options.Judge(op)
		c := j.Calls[op.Calls[0]]
		got := fmt.Sprintf("%d agents, %d locks", c.SlowAgents, c.SlowLocks)
		if got != test.want || len(j.SlowAgents) != c.SlowAgents || len(j.SlowLocks) != c.SlowLocks {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if kept := slices.Contains(j.Reasons, Slow); kept != (c.SlowAgents+c.SlowLocks > 0) {
			t.Errorf("%s: kept as slow: %v", name, kept)
		}
	}
}
