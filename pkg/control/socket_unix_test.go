//go:build !windows

package control

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestOnlyRootMayAsk(t *testing.T) {
	c := serving(t, Handlers{})
	info, err := os.Stat(filepath.Join(c.Dir, Socket))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
}

func TestASocketLeftBehindIsTakenAway(t *testing.T) {
	dir := t.TempDir()
	first := harness.Must(Listen(dir))(t)
	defer first.Close()
	second, err := Listen(dir)
	if err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	_ = second.Close()
}

func firstClient(*testing.T, string) {}
