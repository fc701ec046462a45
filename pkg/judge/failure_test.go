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

func TestRuntimeGap(t *testing.T) {
	rulings(t, map[string]ruling{
		"nothing ran between two plugins": {op: add(plugin("p", 0, 50), plugin("q", 450, 500)), cause: CauseRuntime, says: `^400ms of 500ms: the runtime ran no plugin$`},
		"control: they did":               {op: add(with(plugin("p", 0, 250), cpu(250)), plugin("q", 251, 300)), cause: CausePlugin},
	})
}

func TestANetworkThatTheRuntimeRemoved(t *testing.T) {
	broken, hook := stepOf(event.StepRuntime, "create", 170, 220), below("create", stepOf(event.StepHook, "nvidia", 180, 210))
	broken.Code, hook.Code = 1, 1
	removed := func(c *model.Call) { c.Undone = c.End + 40*ms }
	rulings(t, map[string]ruling{
		"after every plugin succeeded": {
			op: but(add(plugin("bridge", 0, 60)), removed), cause: CauseRuntime,
			says:   `^every plugin succeeded, but the runtime removed the network 40ms later, before the sandbox ran$`,
			remedy: `^run kubectl describe pod, or journalctl -u containerd`,
		},
		"for want of the sandbox image": {
			op: but(add(plugin("bridge", 0, 60)), func(c *model.Call) { removed(c); c.Found = &event.Found{Kind: event.FoundImage, Absent: true} }), cause: CauseRuntime,
			says: `before the sandbox ran; no image is pinned, so the node may lack the runtime's sandbox image$`, remedy: `run ctr -n k8s.io images import`,
		},
		"control: it has that image": {
			op: but(add(plugin("bridge", 0, 60)), func(c *model.Call) { removed(c); c.Found = &event.Found{Kind: event.FoundImage} }), cause: CauseRuntime,
			says: `before the sandbox ran$`, remedy: `^run kubectl describe pod`,
		},
		"after its OCI runtime failed": {
			op: but(add(plugin("bridge", 0, 60)), func(c *model.Call) { c.Undone, c.Broken = c.End+340*ms, []model.Step{broken} }), cause: CauseOCIRuntime,
			says:   `^every plugin succeeded, but the runtime removed the network 340ms later, before the sandbox ran; runc create exited 1$`,
			remedy: `^run kubectl describe pod, or journalctl -u containerd`,
		},
		"not yet, after an OCI hook failed": {
			op:    but(add(plugin("bridge", 0, 60)), func(c *model.Call) { c.Broken = []model.Step{broken, hook} }),
			cause: CauseHook, says: `^every plugin succeeded, but the sandbox did not start; runc create exited 1: nvidia exited 1$`, remedy: `^fix the hook, or remove it`,
		},
		"after the last plugin wrote no result": {
			op: but(add(with(plugin("bridge", 0, 60), wrote("")), plugin("mesh", 60, 70)), removed), cause: CauseFailed,
			says: `^plugin mesh exited 0, but no result was seen, and the runtime removed the network$`, remedy: `^have plugin mesh, and each command that it runs, write nothing but its result`,
		},
		"after a result without an address": {
			op: but(add(plugin("bridge", 0, 60), with(plugin("tuning", 60, 70), resulted())), removed), cause: CauseFailed,
			says: `^the result of plugin tuning has no IP address, and the runtime removed the network$`, remedy: `^set ipam in the CNI configuration`,
		},
		"control: of a further interface": {
			op:    but(add(with(plugin("tuning", 60, 70), resulted())), func(c *model.Call) { removed(c); c.IfName = "eth1" }),
			cause: CauseRuntime, says: `^every plugin succeeded`,
		},
		"control: its result has one": {
			op: but(add(with(plugin("bridge", 0, 60), resulted("10.1.2.3/24"))), removed), cause: CauseRuntime, says: `^every plugin succeeded`,
		},
		"control: no result was seen": {
			op: but(add(plugin("bridge", 0, 60), plugin("mesh", 60, 70)), removed), cause: CauseRuntime, says: `^every plugin succeeded`,
		},
		"after a plugin failed": {
			op:    but(add(with(plugin("bridge", 0, 60), func(im *model.Image) { im.Code = 1 })), removed),
			cause: CauseFailed, says: `^plugin bridge exited 1$`,
		},
	})
}

func resulted(ips ...string) func(*model.Image) {
	return func(im *model.Image) {
		im.Run.Result = &event.Result{CNIVersion: "1.0.0", Interfaces: []string{"eth0"}, IPs: ips}
	}
}
