package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestSlowCommand(t *testing.T) {
	rulings(t, map[string]ruling{
		"a command of a plugin, and what it ran": {
			op:    add(plugin("p", 0, 1000, ran("policyctl", 10, 900, ran("sleep", 20, 890)))),
			cause: CauseCommand, says: `^890ms of 1s: plugin p ran policyctl, which ran sleep$`, remedy: `^remove the command sleep from policyctl`,
		},
		"a command of an agent": {
			op:    add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{ran("Get-NetAdapter", 10, 900)}, nil)))),
			cause: CauseCommand, says: `^890ms of 1s: agentd at /run/a\.sock ran Get-NetAdapter, while plugin p waited`, report: "-",
		},
		"a command of Antrea's agent that is not PowerShell": {
			op:    add(seen(plugin("antrea", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{ran("policyctl", 10, 900)}, nil)))),
			cause: CauseCommand, remedy: `^run strace`, report: "-",
		},
		"runs from one function of an agent": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{
				cameFrom(ran("netadapter", 10, 400), 136), cameFrom(ran("netadapter", 410, 900), 136),
			}, nil)))),
			cause: CauseCommand, says: `^880ms of 1s: agentd .* ran netadapter \(2 times\).*; Go function getNetAdapter \(interface\.go:136\) started netadapter$`, report: "-",
		},
		"runs from different lines of it": {
			op:    add(plugin("p", 0, 1000, cameFrom(ran("policyctl", 10, 400), 7), cameFrom(ran("policyctl", 410, 900), 9))),
			cause: CauseCommand, says: `^880ms of 1s: plugin p ran policyctl \(2 times\); Go function getNetAdapter \(interface\.go\) started policyctl$`,
		},
		"control: runs from different functions, one of them unknown": {
			op:    add(plugin("p", 0, 1000, cameFrom(ran("policyctl", 10, 400), 7), ran("policyctl", 410, 900))),
			cause: CauseCommand, says: `^880ms of 1s: plugin p ran policyctl \(2 times\)$`,
		},
		"the confirmed one of two runs, though it is a little shorter": {
			op: add(seen(plugin("p", 0, 1000), dialled("unix", "/run/a.sock", from(0, 990), served([]*model.Image{
				attributed(ran("netadapter", 10, 480), model.Candidate, false, 0), ran("netadapter", 490, 950),
			}, nil)))),
			cause: CauseCommand, says: `^460ms of 1s: agentd .* ran netadapter, while plugin p waited; 1 more run of netadapter may be for another pod \(unconfirmed\)$`, report: "-",
		},
		"iptables that asks for names": {
			op:    add(plugin("azure-vnet", 0, 1000, ran("sh", 10, 900, listing(20, 890, 10, "-t", "nat", "-L")))),
			cause: CauseCommand, remedy: `^add -n to iptables -t nat -L, which azure-vnet runs, or fix the nameserver`,
		},
		"control: iptables that asks for none": {
			op:    add(plugin("azure-vnet", 0, 1000, listing(20, 890, 10, "-t", "nat", "-nvL"))),
			cause: CauseCommand, remedy: `^(run|replace) `,
		},
		"control: iptables that lists many rules": {
			op:    add(plugin("azure-vnet", 0, 1000, listing(20, 890, 800, "-t", "nat", "-L"))),
			cause: CauseCommand, remedy: `^(run|replace) `,
		},
		"control: it is soon over": {op: add(with(plugin("p", 0, 1000, ran("ip", 10, 20)), cpu(1000))), cause: CausePlugin},
	})
}

func cameFrom(im *model.Image, line int) *model.Image {
	im.Stack = []event.Frame{{Function: "example.com/agent.(*network).getNetAdapter", File: "example.com/agent/interface.go", Line: line}}
	return im
}

func listing(from, to, cpu int64, args ...string) *model.Image {
	im := ran("iptables", from, to)
	im.Args, im.CPU = args, cpu*ms
	return im
}
