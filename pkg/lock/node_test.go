//go:build linux

package lock

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestTheFolderIsLeftAsItWasFound(t *testing.T) {
	there, missing := t.TempDir(), filepath.Join(t.TempDir(), "run")
	for dir, stays := range map[string]bool{there: true, missing: false} {
		release := harness.Must(Take(dir, "test"))(t)
		release()
		release() // again
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) == stays {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
