package judge

import "testing"

func TestLeakedChild(t *testing.T) {
	rulings(t, map[string]ruling{
		"the next plugin begins when the child is gone": {
			op:    add(plugin("first", 0, 100, with(ran("watcher", 50, 1100), outliving)), plugin("second", 1105, 1200)),
			cause: CauseLeakedChild, says: `^1\.01s of 1\.2s: the runtime waited for watcher \(pid 0\) to close the standard output of plugin first, which had exited$`, remedy: `^change plugin first so that it redirects the standard output of watcher`,
		},
		"and who called a delegate goes on then": {
			op:    add(plugin("main", 0, 1200, plugin("ipam", 10, 100, with(ran("watcher", 50, 1100), outliving)), ran("ip", 1105, 1110))),
			cause: CauseLeakedChild, says: `^1\.01s of 1\.2s: plugin main waited for watcher \(pid 0\) to close the standard output of plugin ipam`,
		},
		"the last one of several counts": {
			op: add(plugin("first", 0, 100, with(ran("before", 50, 200), outliving), with(ran("watcher", 50, 1100), outliving), with(ran("after", 60, 300), outliving)),
				plugin("second", 1105, 1200)),
			cause: CauseLeakedChild, says: `the runtime waited for watcher`,
		},
		"it is gone a tenth of the time before": {
			op: add(plugin("first", 0, 100, with(ran("watcher", 50, 980), outliving)), plugin("second", 1100, 1200)), cause: CauseLeakedChild,
		},
		"control: a bit longer before": {
			op: add(plugin("first", 0, 100, with(ran("watcher", 50, 979), outliving)), plugin("second", 1100, 1200)), cause: CauseRuntime,
		},
		"control: a child that lives longer than that": {
			op: add(plugin("first", 0, 100, with(ran("watcher", 50, 5000), outliving)), plugin("second", 1105, 1200)), cause: CauseRuntime,
		},
		"control: one that was gone long before": {
			op: add(plugin("first", 0, 100, with(ran("watcher", 50, 500), outliving)), plugin("second", 1105, 1200)), cause: CauseRuntime,
		},
		"control: one that was waited for": {
			op: add(plugin("first", 0, 100, ran("watcher", 50, 100)), plugin("second", 1105, 1200)), cause: CauseRuntime,
		},
	})
}
