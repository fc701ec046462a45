package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/model"
)

func TestUnexplained(t *testing.T) {
	rulings(t, map[string]ruling{
		"nobody looked":      {op: add(plugin("p", 0, 500)), cause: CauseUnexplained, says: `^500ms of 500ms: plugin p did unobserved work$`, remedy: `detail`},
		"nothing was seen":   {op: but(add(plugin("p", 0, 500)), func(c *model.Call) { c.Seen = true }), cause: CauseUnexplained, remedy: `^$`},
		"it waits for files": {op: add(seen(plugin("p", 0, 500), polled(from(10, 500)))), cause: CauseUnexplained, says: `plugin p waited for something unobserved$`},
	})
}
