package judge

import "testing"

func TestSlowPlugin(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin computes": {op: add(with(plugin("p", 0, 500), cpu(480))), cause: CausePlugin, says: `^480ms of 500ms: plugin p was on a CPU, or waiting for one$`},
	})
}
