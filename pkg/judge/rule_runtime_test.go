package judge

import "testing"

func TestRuntimeGap(t *testing.T) {
	rulings(t, map[string]ruling{
		"nothing ran between two plugins": {op: add(plugin("p", 0, 50), plugin("q", 450, 500)), cause: CauseRuntime, says: `^400ms of 500ms between plugins, in the runtime$`},
		"control: they did":               {op: add(with(plugin("p", 0, 250), cpu(250)), plugin("q", 251, 300)), cause: CausePlugin},
	})
}
