//go:build linux

package doctor

import (
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// doctor finds a hung call through the running cniscope, or by the plugin's process.
func TestACallThatIsStuckIsFound(t *testing.T) {
	for _, running := range []bool{true, false} {
		seen := filepath.Join(t.TempDir(), "seen")
		n := newNode(t, rig.Options{
			Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("stuck")}}},
			Plugins:  map[string][]byte{"stuck": rig.Script(`[ "$CNI_COMMAND" != ADD ] || until [ -e ` + seen + ` ]; do sleep 8; done`)},
		})
		t.Cleanup(func() { write(t, seen, "") })
		n.toml += "[slow]\nhung = \"1s\"\n"
		if running {
			scope.Observe(n.ctx, t, n.rig, scope.Options{Program: program})
		} else {
			// the kernel sees a script as its shell
			harness.Check(t, n.rig.AddPlugin("stuck", built(t, filepath.Join(t.TempDir(), "stuck"), sleeper(seen))))
			// any user can run a plugin
			n.start("stuck", "setpriv", "--bounding-set=-all", "--inh-caps=-all", "env", "CNI_COMMAND=ADD", filepath.Join(n.rig.CNIBinDir(), "stuck"))
		}
		n.silent("calls")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = n.rig.RunPod(n.ctx, rig.PodOptions{Namespace: "shop", Name: "web-0"})
		}()
		harness.Until(n, "the call is found", func() bool { return len(of(n.examine(), "calls")) > 0 })
		if running {
			n.finds("calls", doctor.Problem, "CNI ADD eth0 of pod shop/web-0", "plugin: stuck", "sleep (process ", "nanosleep")
		} else {
			n.finds("calls", doctor.Problem, "the CNI plugin stuck has been running for", "CNI_COMMAND=ADD")
			// containerd applies a change of the directory after the call, and blocks CRI until then.
			write(t, filepath.Join(n.rig.CNIConfDir(), "99-more.conflist"), other)
			n.finds("runtime", doctor.Problem, "its CRI does not", "DeadlineExceeded", "a CNI call that hangs while the CNI directory changes blocks all others")
			n.finds("calls", doctor.Problem, "the CNI plugin stuck has been running for", "CNI_COMMAND=ADD")
		}
		write(t, seen, "")
		<-done
	}
}

// sleeper is a plugin that sleeps until the file seen exists.
func sleeper(seen string) string {
	return `package main

import (
	"os"
	"time"
)

func main() {
	for os.Getenv("CNI_COMMAND") == "ADD" {
		if _, err := os.Stat("` + seen + `"); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
`
}
