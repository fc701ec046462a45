package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

var update = flag.Bool("update", false, "write the expected output anew")

// recordings of real runs, as users may look at them; and what they must give.
const (
	recordings = "../../examples/recordings"
	expected   = "testdata/golden"
)

// Replayed without root, a recording of a real run gives the same spans byte for byte,
// and the same picture.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(recordings, "*.rec*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		for ending, o := range map[string]showOptions{
			".otlp.jsonl": {format: "json", color: "never"},
			".txt":        {format: "text", color: "never"},
			".folded.txt": {format: "text", color: "never", fold: true},

			".summary.txt":        {format: "text", color: "never", summary: true},
			".folded.summary.txt": {format: "text", color: "never", summary: true, fold: true},

			".summary.json": {format: "json", color: "never", summary: true},
		} {
			t.Run(name+ending, func(t *testing.T) {
				t.Setenv("COLUMNS", "")
				t.Setenv("LC_ALL", "C.UTF-8")
				var out bytes.Buffer
				harness.Check(t, showFile(t.Context(), &out, io.Discard, file, o))
				golden := filepath.Join(expected, name+ending)
				if *update {
					harness.Check(t, os.WriteFile(golden, out.Bytes(), 0o644))
				}
				want := harness.Must(os.ReadFile(golden))(t)
				if !bytes.Equal(out.Bytes(), want) {
					t.Errorf("%s is not what %s gives; if the change is meant: make golden\n%s", golden, file, firstDifference(out.String(), string(want)))
				}
			})
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got:  " + clip(g[i]) + "\nwant: " + clip(w[i])
		}
	}
	return "one ends earlier than the other"
}

func clip(s string) string {
	if len(s) > 500 {
		return s[:500] + "…"
	}
	return s
}
