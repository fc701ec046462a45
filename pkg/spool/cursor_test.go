package spool

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Any damaged byte of the cursor moves it back by one step at most.
func TestADamagedCursorIsOneStepBehindAtMost(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, large(dir))
	all := numbers(0, 10)
	appendAll(t, s, noon, all...)
	exportSome(t, s, 5)
	harness.Check(t, s.Close())
	file := filepath.Join(dir, cursorName)
	data := harness.Must(os.ReadFile(file))(t)
	behind := 0
	for i := range data {
		bad := append([]byte(nil), data...)
		bad[i] ^= 0x5a
		harness.Check(t, os.WriteFile(file, bad, 0o600))
		s := mustOpen(t, large(dir))
		got, _ := waiting(t, s)
		if len(got) == 6 {
			behind++
			same(t, "one step behind", got, all[4:])
		} else {
			same(t, "where it was", got, all[5:])
		}
		if s.Found().CursorLost {
			t.Errorf("byte %d: lost", i)
		}
		harness.Check(t, s.Close())
	}
	harness.Equal(t, behind, slotSize, "bytes that matter")
}

func TestALostCursorSendsAllAgainAndSaysSo(t *testing.T) {
	for name, garble := range map[string]func(string) error{
		"removed": os.Remove,
		"emptied": func(file string) error { return os.Truncate(file, 0) },
		"zeroed":  func(file string) error { return os.WriteFile(file, make([]byte, 2*sector), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := mustOpen(t, large(dir))
			harness.Equal(t, s.Found(), (Found{}), "new")
			all := numbers(0, 10)
			appendAll(t, s, noon, all...)
			exportSome(t, s, 5)
			harness.Check(t, s.Close())
			harness.Check(t, garble(filepath.Join(dir, cursorName)))
			again := mustOpen(t, large(dir))
			waits(t, "waiting", again, all...)
			if !again.Found().CursorLost {
				t.Error("nobody is told")
			}
		})
	}
}

// The power fails with the cursor on disk, but not the records.
func TestACursorBehindTheEndHidesNothing(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, large(dir))
	appendAll(t, s, noon, numbers(0, 10)...)
	exportSome(t, s, 10)
	harness.Check(t, s.Close())
	harness.Check(t, os.Truncate(segmentFiles(t, dir)[0], 100))
	again := mustOpen(t, large(dir))
	appendAll(t, again, noon, "new")
	waits(t, "waiting", again, "new")
}
