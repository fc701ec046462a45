package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

func TestSleeping(t *testing.T) {
	const agent = "/run/a.sock"
	asks := func(at ...int64) (all []func(*model.Image)) {
		for _, t := range at {
			all = append(all, dialled("unix", agent, from(t, t+2)))
		}
		return all
	}
	sleeps := []func(*model.Image){slept(from(13, 200)), slept(from(203, 480))}
	rulings(t, map[string]ruling{
		"a plugin polls": {op: add(seen(plugin("p", 0, 500), slept(from(10, 480)))), cause: CauseSleep, says: `^470ms of 500ms: plugin p slept$`, remedy: `^shorten the plugin's poll`},
		"a plugin polls until the runtime kills it": {
			op: add(with(seen(plugin("p", 0, 500), slept(from(10, 480))), func(im *model.Image) { im.Signal = "SIGKILL" })), cause: CauseSleep,
			says: `plugin p slept; then plugin p was killed$`, remedy: `^read plugin p's log of that time`,
		},
		"control: another plugin is killed after it": {
			op:    add(seen(plugin("p", 0, 500), slept(from(10, 480))), with(plugin("q", 500, 520), func(im *model.Image) { im.Signal = "SIGKILL" })),
			cause: CauseSleep, says: `plugin p slept; then plugin q was killed$`, remedy: `^shorten the plugin's poll`,
		},
		"a plugin asks an agent again": {
			op: add(seen(plugin("p", 0, 500), append(asks(10, 201, 481), sleeps...)...)), cause: CauseSleep,
			says: `^464ms of 500ms: plugin p slept between its 3 requests of /run/a.sock$`, remedy: `^read the log of the program that listens at /run/a.sock`,
		},
		"control: it asked all before it slept": {
			op: add(seen(plugin("p", 0, 500), append(asks(1, 4, 8), sleeps...)...)), cause: CauseSleep, says: `plugin p slept`, remedy: `^shorten the plugin's poll`,
		},
		"control: one sleep before its last request": {
			op: add(seen(plugin("p", 0, 500), append(asks(1, 4, 7, 490), slept(from(13, 480)))...)), cause: CauseSleep, says: `plugin p slept$`,
		},
		"control: a thread of one that computes": {op: add(with(seen(plugin("p", 0, 500), slept(from(10, 480))), cpu(490))), cause: CausePlugin},
	})
}
