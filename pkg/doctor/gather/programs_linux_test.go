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
