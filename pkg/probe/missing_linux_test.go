package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func init() {
	// A plugin that waits for a file, and one that waits for a lock file, each six times.
	acts["poll"] = func(dir string) error {
		for range 6 {
			if _, err := os.Stat(filepath.Join(dir, "indicator")); err == nil {
				return fmt.Errorf("the file is there")
			}
			if f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
				return fmt.Errorf("the lock is free")
			}
			time.Sleep(150 * time.Millisecond)
		}
		return nil
	}
}

func TestAFileThatIsPolledForIsSeen(t *testing.T) {
	for _, way := range []string{"", "system-calls"} {
		dir := t.TempDir()
		harness.Check(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
		cmd := acting(t, "poll", dir)
		o := observeProbe(t, Options{Detail: DetailAuto, Way: way, Linger: time.Second}, func(*Probe, *observed) {
			harness.Check(t, cmd.Run())
		})
		most := map[string]*event.Missing{}
		for _, m := range all[*event.Missing](o) {
			if known := most[filepath.Base(m.Path)]; known != nil && m.Start != known.Start {
				t.Errorf("%q: %+v, %+v", way, m, known)
			}
			most[filepath.Base(m.Path)] = m
		}
		for name, want := range map[string]string{"indicator": "newfstatat ENOENT", "lock": "openat EEXIST"} {
			m := most[name]
			if m == nil || m.Name+" "+m.Error != want || m.Count < 2 || m.Count > 6 || m.Start == 0 {
				t.Errorf("%q: %s: %+v of %s", way, name, m, printed(o, all[*event.Missing](o)))
			}
		}
	}
}
