package judge

import (
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

// The words do not depend on counts and holders.
func TestWhatAPartIsDoesNotVary(t *testing.T) {
	for want, part := range map[string]Part{
		"command iptables":                                          {Kind: Commands, Name: "iptables", Count: 40},
		"waiting for file lock /run/xtables.lock":                   {Kind: Locks, Name: "/run/xtables.lock", In: "plugin portmap", Count: 3, Detail: "held by kube-proxy (pid 81)"},
		"plugin bridge waited for IPv6 duplicate address detection": {Kind: DAD, In: "bridge", Detail: " of fd00::2 on eth0"},
		"waiting for file locks, briefly each time":                 {Kind: Locks, Count: 40},
		"waiting for kernel locks, briefly each time":               {Kind: KernelLocks, Count: 40},
		"the runtime ran no plugin":                                 {Kind: Between},
	} {
		harness.Equal(t, part.What(), want)
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
		harness.Equal(t, part.String(), want)
	}
}

func TestWhatAStateIsCalled(t *testing.T) {
	for want, s := range map[string]*model.Spent{
		"":                                   nil,
		"stopped":                            {State: event.AgentStopped},
		"traced by gdb (pid 8)":              {State: event.AgentStopped, By: "gdb (pid 8)"},
		"frozen":                             {State: event.AgentFrozen},
		"frozen by /sys/fs/cgroup/x":         {State: event.AgentFrozen, By: "/sys/fs/cgroup/x"},
		"on a CPU":                           {State: event.AgentRunning},
		"blocked in the kernel":              {State: event.AgentUninterruptible},
		"waiting in kernel function pipe_rd": {State: event.AgentWaiting, Channel: "pipe_rd"},
	} {
		harness.Equal(t, inWords(s), want)
	}
	harness.Equal(t, inWords(&model.Spent{State: event.AgentIdle}), "", "an idle agent")
}

func TestWhatADetectionIsCalled(t *testing.T) {
	for want, d := range map[string]*model.Detection{
		" of fd00::2":         {Address: "fd00::2"},
		" of fd00::2 on eth0": {Address: "fd00::2", On: "eth0"},
		" of fd00::2 on eth0, which another host uses": {Address: "fd00::2", On: "eth0", State: event.AddressDuplicate},
	} {
		harness.Equal(t, detected(d), want)
	}
}

// Each fault of a program has a sentence, and a command unless a new copy of the file is the fix.
func TestWhyAProgramCannotBeStarted(t *testing.T) {
	static := "or replace /cni/p x with a statically linked build"
	for fault, want := range map[event.Fault][2]string{
		event.FaultAbsent:       {"/cni/p x is a broken link to N", "run ln -sf with the path of the installed plugin and '/cni/p x', or reinstall the package that made this link"},
		event.FaultName:         {"its name is a path", ""},
		event.FaultUnreadable:   {"/cni/p x: H", ""},
		event.FaultMode:         {"/cni/p x is not executable (mode H)", "chmod 755 '/cni/p x'"},
		event.FaultEmpty:        {"/cni/p x is empty; its copy may be incomplete", ""},
		event.FaultMount:        {"/cni/p x is on a file system that is mounted noexec (H)", "mount -o remount,exec H"},
		event.FaultArchitecture: {"/cni/p x is built for N, this node is H", "replace /cni/p x with its build for H"},
		event.FaultInterpreter:  {"/cni/p x needs the interpreter N, which does not exist", "install the package that has N, " + static},
		event.FaultLibrary:      {"/cni/p x needs the library N, which no library directory has", "install the package that has N (ldd '/cni/p x' lists all), " + static},
		event.FaultVersion:      {"/cni/p x needs N, which H does not have", "replace /cni/p x with a build for this node's H, or a statically linked one"},
		"another":               {"/cni/p x is neither a program nor a script", ""},
	} {
		says, remedy := Unstartable(event.Program{File: "/cni/p x", Fault: fault, Has: "H", Needs: "N"})
		harness.Equal(t, says, want[0], fault)
		harness.Equal(t, remedy, want[1], fault)
	}
	_, remedy := Unstartable(event.Program{File: "/cni/p x", Fault: event.FaultInterpreter, Needs: `"/bin/sh\r"`})
	harness.Equal(t, remedy, `sed -i 's/\r$//' '/cni/p x'`, "no package has an interpreter with the line end of Windows")
}

func TestWhichCommandLetsAChainAccept(t *testing.T) {
	for want, c := range map[string]event.Chain{
		"iptables-legacy -P FORWARD ACCEPT":                               {Backend: "iptables-legacy", Family: "ip"},
		"ip6tables-legacy -P FORWARD ACCEPT":                              {Backend: "iptables-legacy", Family: "ip6"},
		"nft chain inet filter forward '{policy accept;}'":                {Backend: "nftables", Family: "inet", Table: "filter", Name: "forward"},
		"run nft list chains, and set the policy of that chain to accept": {Backend: "nftables", Family: "inet", Table: "filter", Name: "a b"},
	} {
		harness.Equal(t, Accept(&c), want)
	}
	for _, c := range []event.Chain{{Family: "-f", Table: "t", Name: "n"}, {Family: "f", Table: "1", Name: "n"}} {
		harness.Equal(t, Accept(&c), "run nft list chains, and set the policy of that chain to accept")
	}
}

// A new kind of fact must have an entry.
func TestEveryKindOfFactIsCharged(t *testing.T) {
	joined := map[model.FactKind]bool{model.FactSleep: true, model.FactPoll: true}
	for kind := range model.FactKinds {
		if c := chargings[kind]; (c.part == nil) != joined[kind] {
			t.Errorf("kind %d of facts has the rank %d, and no part: %v", kind, c.rank, c.part == nil)
		}
	}
}

// Plain is for tests of recordings.
var Plain = plain
