package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

func TestRuntimeGap(t *testing.T) {
	rulings(t, map[string]ruling{
		"nothing ran between two plugins": {op: add(plugin("p", 0, 50), plugin("q", 450, 500)), cause: CauseRuntime, says: `^400ms of 500ms: the runtime ran no plugin$`},
		"control: they did":               {op: add(with(plugin("p", 0, 250), cpu(250)), plugin("q", 251, 300)), cause: CausePlugin},
	})
}

func TestANetworkThatTheRuntimeRemoved(t *testing.T) {
	removed := func(c *model.Call) { c.Undone = c.End + 40*ms }
	rulings(t, map[string]ruling{
		"after every plugin succeeded": {
			op: but(add(plugin("bridge", 0, 60)), removed), cause: CauseRuntime,
			says:   `^every plugin succeeded, but the runtime removed the network 40ms later, before the sandbox ran$`,
			remedy: `^run kubectl describe pod, or journalctl -u containerd`,
		},
		"after a plugin failed": {
			op:    but(add(with(plugin("bridge", 0, 60), func(im *model.Image) { im.Code = 1 })), removed),
			cause: CauseFailed, says: `^plugin bridge exited 1$`,
		},
	})
}
