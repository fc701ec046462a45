//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// Pods before and after a plugin's change, which adds a sleep and a second run of a program: the comparison names
// exactly that.
func TestDiffNamesWhatChanged(t *testing.T) {
	changed := filepath.Join(t.TempDir(), "changed")
	s := setRig(t, false, rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("policy")}}},
		Plugins: map[string][]byte{"policy": rig.Script(fmt.Sprintf(`[ "$CNI_COMMAND" = ADD ] || exit 0
uname >/dev/null
if [ -e %s ]; then uname >/dev/null; sleep 1; fi`, changed))},
	})
	record := func(name string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), name+".rec.gz")
		recorder := scope.Observe(s.ctx, t, s.rig, scope.Options{Program: program, Args: []string{"record", file}})
		for i := range 8 {
			s.pod(rig.PodOptions{Namespace: "shop", Name: fmt.Sprint(name, "-", i)})
		}
		harness.Check(t, recorder.Stop())
		return file
	}
	before := record("before")
	harness.Check(t, os.WriteFile(changed, nil, 0o600))
	after := record("after")

	var c show.Comparison
	harness.Check(t, json.Unmarshal([]byte(s.run("diff", "--format", "json", before, after)), &c))
	t.Logf("\n%s", s.run("diff", before, after))
	words := map[string]show.Change{}
	for _, kind := range c.Kinds {
		if kind.Name != "CNI ADD eth0" {
			continue
		}
		for _, row := range kind.Rows {
			words[row.By+" "+row.Name] = row
		}
	}
	// The whole call's duration depends on the machine's load.
	for what, want := range map[string]show.Word{"run policy": show.Slower, "command sleep": show.Appeared} {
		if got := words[what]; got.Word != want || got.B.Calls != 8 {
			t.Errorf("%s: %q in %d calls, want %q", what, got.Word, got.B.Calls, want)
		}
	}
	if got := words["command uname"]; got.A.PerCall != 1 || got.B.PerCall != 2 || got.Word == show.Appeared || got.Word == show.Vanished {
		t.Errorf("uname: %+v", got)
	}
	if got := words["run bridge"]; got.A.Calls != 8 || got.B.Calls != 8 || got.Word == show.Appeared {
		t.Errorf("bridge: %+v", got)
	}
}
