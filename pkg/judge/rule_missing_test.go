package judge

import (
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
)

func TestMissing(t *testing.T) {
	never := func(c *model.Call) { c.NeverRun = []string{"portmap"} }
	found := func(faults ...event.Program) func(*model.Call) {
		return func(c *model.Call) {
			never(c)
			c.Programs = &event.Programs{Looked: []string{"portmap"}, Faults: faults}
		}
	}
	foreign := event.Program{Name: "portmap", File: "/b/portmap", Fault: event.FaultArchitecture, Needs: "aarch64", Has: "x86-64"}
	unlinked := event.Program{Name: "p", File: "/b/p", Fault: event.FaultLibrary, Needs: "libx.so.1"}
	old := event.Program{Name: "p", File: "/b/p", Fault: event.FaultVersion, Needs: "GLIBC_2.34", Has: "2.31"}
	looked := func(faults ...event.Program) func(*model.Call) {
		return func(c *model.Call) { c.Programs = &event.Programs{Faults: faults} }
	}
	rulings(t, map[string]ruling{
		"the next plugin is built for another architecture": {
			op: but(add(plugin("p", 0, 50)), found(foreign)), cause: CauseMissing,
			says: `^plugin "portmap" cannot start: /b/portmap is built for aarch64, this node is x86-64$`, remedy: `^replace /b/portmap with its build for x86-64$`,
		},
		"the next plugin is not there": {
			op: but(add(plugin("p", 0, 50)), found(event.Program{Name: "portmap", Fault: event.FaultAbsent, Has: "/b"})), cause: CauseMissing,
			says: `cannot start: it is not in /b$`, remedy: `^install plugin portmap into the CNI binary directory`, report: "containerd/containerd#8419",
		},
		"the next plugin is a link to nothing": {
			op: but(add(plugin("p", 0, 50)), found(event.Program{Name: "portmap", File: "/b/portmap", Fault: event.FaultAbsent, Has: "/b", Needs: "/k/cni"})), cause: CauseMissing,
			says: `cannot start: /b/portmap is a broken link to /k/cni$`, remedy: `^run ln -sf`,
		},
		"control: the next plugin's program is sound": {
			op: but(add(plugin("p", 0, 50)), found()), cause: CauseRuntime, says: `did not run, though its program can start$`, remedy: `runtime's log`,
		},
		"the loader did not find a library": {
			op: but(add(with(plugin("p", 0, 50), exit(127))), looked(unlinked)), cause: CauseMissing,
			says: `^plugin p exited 127; plugin "p" cannot start: /b/p needs the library libx.so.1`, remedy: `package that has libx.so.1`,
		},
		"the loader did not find a version": {
			op: but(add(with(plugin("p", 0, 50), exit(1))), looked(old)), cause: CauseMissing,
			says: `^plugin p exited 1; plugin "p" cannot start: /b/p needs GLIBC_2.34`, remedy: `statically linked`,
		},
		"control: it fails in its own words": {
			op: but(add(with(with(plugin("p", 0, 50), exit(1)), wrote("no way"))), looked(old)), cause: CauseFailed,
		},
		"control: it failed by itself": {
			op: but(add(with(plugin("p", 0, 50), exit(1))), looked(unlinked)), cause: CauseFailed,
		},
		"control: a shell script that did not find a command": {
			op: but(add(with(plugin("p", 0, 50), exit(127))), looked(foreign)), cause: CauseFailed,
		},
		"its IPAM cannot be started": {
			op:    but(add(with(with(plugin("p", 0, 50), exit(1)), wrote("fork/exec /b/portmap: exec format error"))), looked(foreign)),
			cause: CauseMissing, says: `exec format error"; plugin "portmap" cannot start: /b/portmap is built for aarch64`, remedy: `^replace /b/portmap`,
		},
		"control: the same words of another program": {
			op:    but(add(with(with(plugin("p", 0, 50), exit(1)), wrote("fork/exec /b/other: exec format error"))), looked(foreign)),
			cause: CauseFailed,
		},
		"loopback, beside a network that was made": {
			op: but(add(plugin("p", 0, 50)), func(c *model.Call) {
				c.NeverRun = []string{"loopback"}
				c.Programs = &event.Programs{Looked: []string{"loopback"}, Faults: []event.Program{{Name: "loopback", Fault: event.FaultAbsent, Has: "/b"}}}
			}),
			cause: CauseMissing, says: `^plugin "loopback" cannot start: it is not in /b$`, remedy: `^install plugin loopback into the CNI binary directory`, report: "containerd/containerd#8419",
		},
		"the next plugin never ran": {
			op: but(add(plugin("p", 0, 50)), never), cause: CauseMissing, says: `^plugin portmap did not run; its binary may be missing$`, remedy: `binary directory`, report: "containerd/containerd#8419",
		},
		"control: because the one before it failed": {
			op: but(add(with(plugin("p", 0, 50), exit(1))), never), cause: CauseFailed,
		},
	})
}
