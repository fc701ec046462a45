package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/test/harness"
)

// A stranger's recording says what no source says of work after an ADD, and is shown all the same.
func TestAStrangersRecordingIsShown(t *testing.T) {
	var out bytes.Buffer
	harness.Check(t, showFile(t.Context(), &out, io.Discard, "testdata/after-enters.rec", showOptions{format: "json", color: "never"}))
	harness.Says(t, out.String(), "work after ADD")
}

func TestARecordingThatCannotBeWrittenLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	state, options := filepath.Join(dir, "state"), filepath.Join(dir, "options.toml")
	harness.Check(t, os.WriteFile(options, fmt.Appendf(nil, "[state]\ndir = %q\n", state), 0o600))
	_, _, err := cniscope(t, "record", "--config", options, filepath.Join(dir, "missing", "x.rec"))
	harness.Says(t, fmt.Sprint(err), "cannot create the recording")
	if _, err := os.Stat(state); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there: %v", state, err)
	}
}

// A panic over a recording is an error with exit code 1 that names the file, the place and where to report it; it is
// not hidden by what follows.
func TestAPanicOverARecordingIsAnError(t *testing.T) {
	failed := func() (err error) {
		defer replay.Guard("odd.rec", &err)
		var none []int
		_ = none[len(os.Args)]
		return nil
	}()
	later := func() (err error) {
		defer replay.Guard("odd.rec", &err)
		panic("broken")
	}()
	for _, err := range []error{failed, later} {
		if err == nil || exitCode(err) != 1 {
			t.Fatalf("%v", err)
		}
		harness.Says(t, err.Error(), "cannot show odd.rec: internal error at recording_test.go:", "https://github.com/cniscope/cniscope/issues")
	}
	if err := func() (err error) { defer replay.Guard("", &err); return io.EOF }(); !errors.Is(err, io.EOF) {
		t.Errorf("an error became %v", err)
	}
}

// Replayed, a recording of a node with trace.fold_commands gives the spans that the node exported.
func TestARecordingIsFoldedAsItsNodeFolds(t *testing.T) {
	const plain = "testdata/ordinary-pod.rec.gz"
	file, err := os.Open(plain)
	harness.Check(t, err)
	defer file.Close()
	unzipped := harness.Must(gzip.NewReader(file))(t)
	data := harness.Must(io.ReadAll(unzipped))(t)
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	var header map[string]any
	harness.Check(t, json.Unmarshal(first, &header))
	header["options"].(map[string]any)["fold"] = true
	if first, err = json.Marshal(header); err != nil {
		t.Fatal(err)
	}
	folds := filepath.Join(t.TempDir(), "folds.rec")
	harness.Check(t, os.WriteFile(folds, append(append(first, '\n'), rest...), 0o600))
	shown := func(path string, o showOptions) string {
		var out bytes.Buffer
		o.color = "never"
		harness.Check(t, showFile(t.Context(), &out, io.Discard, path, o))
		return out.String()
	}
	all, few := shown(plain, showOptions{format: "json"}), shown(plain, showOptions{format: "json", fold: true})
	for what, pair := range map[string][2]string{
		"spans":             {shown(folds, showOptions{format: "json"}), few},
		"each of the spans": {shown(folds, showOptions{format: "json", each: true}), all},
		"the picture":       {shown(folds, showOptions{format: "text"}), shown(plain, showOptions{format: "text"})},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s", what, firstDifference(pair[0], pair[1]))
		}
	}
	if all == few {
		t.Error("nothing is folded in this recording")
	}
}
