package judge

import "testing"

func TestSleeping(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin polls":                         {op: add(seen(plugin("p", 0, 500), slept(from(10, 480)))), cause: CauseSleep, says: `^470ms of 500ms: plugin p slept$`},
		"control: a thread of one that computes": {op: add(with(seen(plugin("p", 0, 500), slept(from(10, 480))), cpu(490))), cause: CausePlugin},
	})
}
