package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestFailed(t *testing.T) {
	rulings(t, map[string]ruling{
		"a plugin says what went wrong": {
			op: add(with(seen(plugin("p", 0, 50), wrote("no address left")), exit(1))), cause: CauseFailed, says: `^p exited 1: code 11: "no address left"$`, remedy: `^$`,
		},
		"and what it waited for before": {
			op:    add(with(seen(plugin("p", 0, 5000), wrote("timed out"), waited(event.WaitLock, "/run/l", from(0, 4900))), exit(1))),
			cause: CauseFailed, says: `^p exited 1: code 11: "timed out"; before that, 4\.9s of 5s waiting for lock /run/l$`,
		},
	})
}
