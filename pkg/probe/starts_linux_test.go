package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/test/harness"
)

func TestAFullTableOfStartsIsCounted(t *testing.T) {
	cmd := plugin(t, "fake", "true")
	bundle := filepath.Join(t.TempDir(), container)
	harness.Check(t, os.Mkdir(bundle, 0o755))
	// Wherever the environment lies, its search for CNI_COMMAND finds a part of it, also in a shim's.
	runtime := newShell(t, "env", "--unset=CNI_COMMAND", "PARTS=COMMCOMM.COMMCOMM.COMMCOMM.COMMCOMM", "sh")
	shim := fmt.Sprintf("(cd %s && exec env true)\n", bundle)
	o := observeProbe(t, Options{Anchors: serving(t, runtime.Process.Pid)}, func(p *Probe, _ *observed) {
		starts := p.kernel.Life.Starts
		for pid := range starts.MaxEntries() {
			harness.Check(t, starts.Put(1<<30+pid, kernel.LifeStart{}))
		}
		env := ""
		for _, kv := range cmd.Env {
			env += fmt.Sprintf(" '%s'", kv)
		}
		runtime.run(t, fmt.Sprintf("env%s %s\n", env, cmd.Path)+shim)
		harness.Until(t, "the loss is counted", func() bool { return p.Stats().Lost["table of sandbox starts full"] > 0 })
	})
	if o.lost() != 0 {
		t.Errorf("calls lost %d events", o.lost())
	}
}
