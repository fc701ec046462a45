package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

func TestATraceIsDrawn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "incident.bin")
	harness.Check(t, os.WriteFile(path, etwtest.Seed().Bytes(), 0o600))
	out, diagnostics, err := cniscope(t, "show", path)
	t.Logf("%s\n%s\n%v", out, diagnostics, err)
	for _, f := range []string{"airbus-ShutdownPerfDiagLogger.etl", "perfview-net.etl"} {
		out, diagnostics, err := cniscope(t, "show", "/tmp/etlt/"+f)
		t.Logf("%s\n%s\n%v", out, diagnostics, err)
	}
}
