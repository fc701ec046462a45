package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestFailed(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin says what went wrong": {
			op: add(with(seen(plugin("p", 0, 50), wrote("no address left")), exit(1))), cause: CauseFailed, says: `^plugin p failed \(code 11\): "no address left"$`, remedy: `^$`,
		},
		"and what it waited for before": {
			op:    add(with(seen(plugin("p", 0, 5000), wrote("timed out"), waited(event.WaitLock, "/run/l", from(0, 4900))), exit(1))),
			cause: CauseFailed, says: `^plugin p failed \(code 11\): "timed out"; 4\.9s of 5s: plugin p waited for file lock /run/l$`, remedy: `^$`,
		},
		"a command says nothing, and the kernel's refusal is why": {
			op: add(with(plugin("mesh", 0, 50, seen(with(ran("iptables-nft", 10, 20), exit(4)),
				refused("NFT_MSG_NEWRULE", "EINVAL", from(12, 13)))), exit(1))),
			cause: CauseFailed, remedy: `^run that command by hand`, report: "microsoft/WSL#11884",
			says: `^plugin mesh exited 1; its last command, iptables-nft, exited 4, because the kernel refused NFT_MSG_NEWRULE \(EINVAL\)$`,
		},
		"it tried again, and slept at last": {
			op: add(with(plugin("mesh", 0, 2050, with(ran("iptables-nft", 0, 10), exit(4)), seen(with(ran("iptables-nft", 1010, 1020), exit(4)),
				refused("NFT_MSG_NEWRULE", "ENOENT", from(1012, 1013))), seen(ran("sleep", 1030, 2040), waited(event.WaitSleep, "nanosleep", from(1035, 2038)))), exit(1))),
			cause: CauseFailed, remedy: `^run that command by hand`,
			says: `^plugin mesh exited 1; its last command, iptables-nft, exited 4, because the kernel refused NFT_MSG_NEWRULE \(ENOENT\) \(2 times\)`,
		},
		"control: another command came after it": {
			op: add(with(plugin("mesh", 0, 2050, seen(with(ran("iptables-nft", 1010, 1020), exit(4)),
				refused("NFT_MSG_NEWRULE", "ENOENT", from(1012, 1013))), ran("jq", 1030, 2040)), exit(1))),
			cause: CauseFailed, remedy: `^$`, says: `^plugin mesh exited 1`,
		},
		"a command of its agent failed before": {
			op: add(with(seen(plugin("ovn", 0, 50), wrote("configure nic failed"), dialled("unix", "/run/ovn.sock", from(1, 45), served([]*model.Image{
				ran("ovs-vsctl", 5, 10), with(ran("ovs-vsctl", 20, 40), exit(1)),
			}, nil))), exit(1))),
			cause: CauseFailed, remedy: `^$`,
			says: `^plugin ovn failed \(code 11\): "configure nic failed"; before that, a command of its agent, ovs-vsctl, exited 1$`,
		},
		"control: the agent's command ended after the plugin": {
			op: add(with(seen(plugin("ovn", 0, 50), wrote("configure nic failed"), dialled("unix", "/run/ovn.sock", from(1, 45), served([]*model.Image{
				with(ran("ovs-vsctl", 5, 60), exit(1)),
			}, nil))), exit(1))),
			cause: CauseFailed, says: `^plugin ovn failed \(code 11\): "configure nic failed"$`,
		},
		"the agent's command is not confirmed": {
			op: add(with(seen(plugin("ovn", 0, 50), wrote("configure nic failed"), dialled("unix", "/run/ovn.sock", from(1, 45), served([]*model.Image{
				attributed(with(ran("ovs-vsctl", 5, 20), exit(1)), model.Candidate, false, 0),
			}, nil))), exit(1))),
			cause: CauseFailed, says: `its agent, ovs-vsctl, exited 1 \(unconfirmed\)$`,
		},
		"control: the agent's last command succeeded": {
			op: add(with(seen(plugin("ovn", 0, 50), wrote("configure nic failed"), dialled("unix", "/run/ovn.sock", from(1, 45), served([]*model.Image{
				with(ran("iptables", 5, 10), exit(1)), ran("iptables", 20, 40),
			}, nil))), exit(1))),
			cause: CauseFailed, remedy: `^$`, says: `^plugin ovn failed \(code 11\): "configure nic failed"$`,
		},
		"its time ran out, while its agent's command went on": {
			op: add(with(seen(plugin("mesh", 0, 5000), wrote("timed out waiting for the port"), dialled("unix", "/run/mesh.sock", from(1, 4990), served([]*model.Image{
				with(ran("iptables", 5, 9000), outliving),
			}, nil))), exit(1))),
			cause: CauseFailed, says: `for the port"; 4\.\d+s of 5s: .* ran iptables, while plugin mesh waited`,
		},
		"control: it got an answer, while its agent's command went on": {
			op: add(with(seen(plugin("mesh", 0, 5000), wrote("no address left"), dialled("unix", "/run/mesh.sock", from(1, 4990), served([]*model.Image{
				with(ran("iptables", 5, 9000), outliving),
			}, nil))), exit(1))),
			cause: CauseFailed, says: `no address left"; 4\.\d+s of 5s: plugin mesh waited for agentd at /run/mesh\.sock`,
		},
		"an agent's delegate is to blame": {
			op: add(with(seen(plugin("antrea", 0, 50), wrote("rpc error"), dialled("unix", "/run/antrea.sock", from(1, 45), served([]*model.Image{
				with(seen(plugin("host-local", 5, 40), wrote("no address left")), exit(1)),
			}, nil))), exit(1))),
			cause: CauseFailed, says: `^plugin host-local failed \(code 11\): "no address left"$`,
		},
	})
}
