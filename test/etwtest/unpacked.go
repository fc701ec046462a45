package etwtest

import (
	"archive/zip"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// Unpacked returns a trace, also of an archive.
func Unpacked(t *testing.T, file string) []byte {
	t.Helper()
	if !strings.HasSuffix(file, ".zip") {
		return harness.Must(os.ReadFile(file))(t)
	}
	z := harness.Must(zip.OpenReader(file))(t)
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, ".etl") {
			r := harness.Must(f.Open())(t)
			return harness.Must(io.ReadAll(r))(t)
		}
	}
	t.Fatalf("%s: no .etl in it", file)
	return nil
}
