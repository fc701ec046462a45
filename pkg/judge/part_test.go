package judge

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/model"
)

// The words do not depend on counts and holders.
func TestWhatAPartIsDoesNotVary(t *testing.T) {
	for want, part := range map[string]Part{
		"command iptables":                                          {Kind: Commands, Name: "iptables", Count: 40},
		"waiting for file lock /run/xtables.lock":                   {Kind: Locks, Name: "/run/xtables.lock", In: "plugin portmap", Count: 3, Detail: "held by kube-proxy (pid 81)"},
		"plugin bridge waited for IPv6 duplicate address detection": {Kind: DAD, In: "bridge", Detail: "for fd00::2 on eth0"},
		"the runtime ran no plugin":                                 {Kind: Between},
	} {
		if got := part.What(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The count is for waits in that state only.
func TestAStateIsCountedOnlyIfItCameAgain(t *testing.T) {
	for longest, want := range map[time.Duration]string{
		1995 * time.Millisecond: "plugin p waited for agentd (stopped), through agent",
		1000 * time.Millisecond: "plugin p waited for agentd (stopped, 2 times), through agent",
	} {
		part := Part{
			Kind: Agents, Name: "agentd", State: "stopped", In: "p", Asked: "through agent", Count: 2, Time: 2 * time.Second,
			when: model.Interval{End: int64(longest)},
		}
		if got := part.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
