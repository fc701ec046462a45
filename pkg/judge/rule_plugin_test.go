package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

func TestSlowPlugin(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin computes": {op: add(with(plugin("p", 0, 500), cpu(480))), cause: CausePlugin, says: `^480ms of 500ms: plugin p used 480ms of CPU time$`},
		"a plugin computes and waits": {
			op: add(with(plugin("p", 0, 500), func(im *model.Image) { im.CPU, im.RunDelay = 300*ms, 190*ms })), cause: CausePlugin,
			says: `: plugin p used 300ms of CPU time and waited 190ms for a CPU \(sums over its threads\)$`,
		},
	})
}
