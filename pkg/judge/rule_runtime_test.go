package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

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
