package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
)

func TestSystemCall(t *testing.T) {
	rulings(t, map[string]ruling{
		"a slow disk":                  {op: add(seen(plugin("p", 0, 500), waited(event.WaitCall, "fsync", from(10, 480)))), cause: CauseSystemCall, says: `^470ms of 500ms: p waited in system call fsync$`, remedy: `disk`},
		"control: it is soon over":     {op: add(with(seen(plugin("p", 0, 500), waited(event.WaitCall, "fsync", from(10, 20))), cpu(490))), cause: CausePlugin},
		"of another call less is said": {op: add(seen(plugin("p", 0, 500), waited(event.WaitCall, "mount", from(10, 480)))), cause: CauseSystemCall, remedy: `^$`},
	})
}
