package learned

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/disktest"
	"github.com/cniscope/cniscope/test/harness"
)

// The power may fail at each call of writing the baseline: the old file or the new one is there, and the new one once
// writing it has succeeded.
func TestTheBaselineIsOnTheDiskOnceItIsWritten(t *testing.T) {
	faults := []disktest.Fault{disktest.Killed, disktest.Forever}
	disktest.Sweep(t, faults, func(t *testing.T, at int, fault disktest.Fault) *disktest.Disk {
		dir := disktest.Folder(t)
		harness.Check(t, os.WriteFile(filepath.Join(dir, fileName), []byte("old"), 0o600))
		d := harness.Must(disktest.New(dir, at, fault))(t)
		failed := writeOwn(d, dir, fileName, []byte("new"))
		disktest.PowerCuts(t, d, func(folder, how string) {
			got, err := os.ReadFile(filepath.Join(folder, fileName))
			if is := string(got); is != "new" && (is != "old" || failed == nil) {
				t.Errorf("%s: it holds %q, %v; writing it ended with %v", how, is, err, failed)
			}
		})
		return d
	})
}
