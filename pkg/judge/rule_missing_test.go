package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

func TestMissing(t *testing.T) {
	never := func(c *model.Call) { c.NeverRun = []string{"portmap"} }
	rulings(t, map[string]ruling{
		"the next plugin never ran": {
			op: but(add(plugin("p", 0, 50)), never), cause: CauseMissing, says: `^plugin "portmap" never ran \(missing binary\?\)$`, remedy: `bin folder`, report: "containerd/containerd#8419",
		},
		"control: because the one before it failed": {
			op: but(add(with(plugin("p", 0, 50), exit(1))), never), cause: CauseFailed,
		},
	})
}
