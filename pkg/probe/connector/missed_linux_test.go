package connector

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/proctracker"
	"github.com/cniscope/cniscope/test/harness"
)

func TestAPluginOfAMillisecondIsACallOrIsCounted(t *testing.T) {
	const plugins, loops = 200, 4
	file := filepath.Join(t.TempDir(), "bridge")
	program := harness.Must(exec.LookPath("true"))(t)
	text := harness.Must(os.ReadFile(program))(t)
	harness.Check(t, os.WriteFile(file, text, 0o755))
	o := observe(t)
	for range loops {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		harness.Check(t, loop.Start())
		t.Cleanup(func() { _, _ = loop.Process.Kill(), loop.Wait() })
	}
	for range plugins {
		cmd := exec.Command(file)
		cmd.Env = []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=" + container, "CNI_PATH=" + filepath.Dir(file)}
		harness.Check(t, cmd.Run())
	}
	harness.Eventually(t, func() error {
		calls := 0
		for _, e := range o.list() {
			if x, is := e.Body.(*event.Exec); is && x.Root {
				calls++
			}
		}
		stats := o.Stats()
		missed := int(stats.Lost[proctracker.LostCall] + stats.Lost[proctracker.LostNotices])
		if calls+missed < plugins {
			return fmt.Errorf("of %d plugins %d are calls, and %d missed: %+v", plugins, calls, missed, stats)
		}
		t.Logf("%d calls, %d missed", calls, missed)
		return nil
	})
}
