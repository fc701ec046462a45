package gather

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

// Others are not read again.
func TestAChangedProgramIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "plugin")
	write := func(text string, mode os.FileMode) {
		harness.Check(t, os.WriteFile(file, []byte(text), mode))
		harness.Check(t, os.Chmod(file, mode))
	}
	var p Programs
	look := func() (fault event.Fault) {
		if found := p.Faults(os.Getpid(), []string{dir}, []string{"plugin"}); len(found) > 0 {
			fault = found[0].Fault
		}
		return fault
	}
	harness.Equal(t, look(), event.FaultAbsent, "no file")
	write("#!/bin/sh\n", 0o755)
	harness.Equal(t, look(), "", "a script")
	at := p.at
	harness.Equal(t, look(), "", "the same script")
	harness.Equal(t, p.at, at, "it was not read again")
	write("#!/bin/sh\n", 0o644)
	harness.Equal(t, look(), event.FaultMode, "not executable")
	write("#!/nowhere/sh\n", 0o755)
	harness.Equal(t, look(), event.FaultInterpreter, "no interpreter")
}

// Only a link that leads elsewhere is unnoticed, until it is resolved again.
func TestALinkedDirectoryIsResolvedAgain(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(root, "bin")
	for _, dir := range []string{"old", "new"} {
		harness.Check(t, os.Mkdir(filepath.Join(root, dir), 0o755))
	}
	harness.Check(t, os.WriteFile(filepath.Join(root, "old/plugin"), []byte("#!/bin/sh\n"), 0o755))
	harness.Check(t, os.Symlink(filepath.Join(root, "old"), link))
	var p Programs
	look := func() int { return len(p.Faults(os.Getpid(), []string{link}, []string{"plugin"})) }
	harness.Equal(t, look(), 0, "faults")
	p.dirs[0] = filepath.Join(root, "old") // as if it were not our root
	harness.Check(t, os.Remove(link))
	harness.Check(t, os.Symlink(filepath.Join(root, "new"), link))
	harness.Equal(t, look(), 0, "faults in the directory of before")
	p.resolved = p.resolved.Add(-reresolve)
	harness.Equal(t, look(), 1, "faults a second later")
	harness.Check(t, os.WriteFile(filepath.Join(root, "new/plugin"), []byte("#!/bin/sh\n"), 0o755))
	harness.Equal(t, look(), 0, "faults of the written file")
	p.dirs[0] = filepath.Join(root, "gone")
	harness.Equal(t, look(), 0, "faults, because a file that is missed is looked for again")
}
