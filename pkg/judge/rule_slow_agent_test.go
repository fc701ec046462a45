package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestSlowAgent(t *testing.T) {
	rulings(t, map[string]ruling{
		"what listens there does not answer": {
			op:    add(seen(plugin("cilium-cni", 0, 1000), dialled("unix", "/run/cilium.sock", from(10, 950)))),
			cause: CauseAgent, says: `^940ms of 1s: plugin cilium-cni waited for /run/cilium\.sock$`, report: "cilium/cilium#45103",
		},
		"control: the agent of another plugin, at an address like Cilium's": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/cilium.sock", from(10, 950)))),
			cause: CauseAgent, report: "-",
		},
		"what it does is known": {
			op: add(seen(plugin("cilium-cni", 0, 1000), dialled("unix", "/run/cilium.sock", from(10, 950), served(nil, nil),
				func(c *model.Connection) { c.Work.CPU = 900 * ms }))),
			cause: CauseAgent, says: `plugin cilium-cni waited for agentd at /run/cilium\.sock; agentd was on a CPU for 900ms$`,
		},
		"control: it runs something that takes so long": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{ran("conntrack", 10, 900)}, nil)))),
			cause: CauseCommand,
		},
		"control: it answers at once": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 20)), slept(from(30, 1000)))), cause: CauseSleep,
		},
	})
}

// at is where a connection's agent was for most of it.
func at(perhaps bool) func(*model.Connection) {
	return func(c *model.Connection) {
		c.Work.Perhaps, c.Work.Stack = perhaps, []event.Frame{
			{Function: "example.com/agent.(*network).allocate", File: "example.com/agent/ipam.go", Line: 12}, {Function: "main.add"},
		}
	}
}

func TestTheFunctionOfAnAgentIsNamed(t *testing.T) {
	inside := seen(plugin("p", 0, 1000), slept(from(10, 980)))
	inside.In = []event.Frame{{Function: "main.cmdAdd", File: "main.go", Line: 7}}
	asks := func(network, address string, upTo int64, change ...func(*model.Connection)) *model.Operation {
		asked := dialled(network, address, from(0, upTo), change...)
		im := seen(plugin("p", 0, 1000), asked, slept(from(upTo, max(upTo, 700))))
		im.In = inside.In
		return add(im)
	}
	rulings(t, map[string]ruling{
		"of a plugin that calls an agent": {
			op:    asks("unix", "/run/a.sock", 990, served(nil, nil)),
			cause: CauseAgent, says: `waited for agentd at /run/a\.sock, in cmdAdd \(main\.go:7\)$`,
		},
		"of a plugin that asks the API server": {
			op:    asks("tcp", "10.96.0.1:443", 990),
			cause: CauseAPIServer, says: `looks like the API server, in cmdAdd \(main\.go:7\)$`,
		},
		"control: elsewhere for most of its time": {
			op:    asks("unix", "/run/a.sock", 400, served(nil, nil)),
			cause: CauseAgent, says: `waited for agentd at /run/a\.sock;`,
		},
		"of a call": {
			op: calling(at(false)), cause: CauseAgent, says: `; agentd was in add > allocate \(ipam\.go:12\)$`,
		},
		"of one of several": {
			op: calling(at(true)), cause: CauseAgent, says: `; agentd was possibly in add > allocate \(ipam\.go:12\)$`,
		},
		"that waits for a peer": {
			op:    calling(did(waits("dbd", from(10, 980))), at(false)),
			cause: CausePeer, says: `waited for dbd, through agentd, in add > allocate \(ipam\.go:12\)$`,
		},
		"of a plugin": {
			op: add(inside), cause: CauseSleep, says: `plugin p slept, in cmdAdd \(main\.go:7\)$`,
		},
	})
}
