package learned

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/test/harness"
)

// known is a baseline of three programs.
func known() *baseline.Document {
	var b baseline.Book
	for _, key := range []baseline.Key{{Plugin: "bridge", Command: "ADD"}, {Plugin: "bridge", Command: "DEL"}, {Plugin: "portmap", Command: "ADD"}} {
		for at := range int64(500) {
			b.Take(baseline.Call{
				Key: key, Edition: baseline.Edition{Build: "0123456789abcdef", Configuration: "18ac"}, Took: 1e6, At: 1e9 * (1 + at),
			}, 1e8)
		}
	}
	return b.Document()
}

// folder returns options that keep a baseline in a folder.
func folder(t *testing.T) config.Options {
	t.Helper()
	o := config.Default()
	o.State.Dir, o.Slow.BaselineDir = filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "baseline")
	return o
}

func TestBaselineIsKeptOverARestart(t *testing.T) {
	o := folder(t)
	Open(o, slog.New(slog.DiscardHandler)).Save(t.Context(), known())
	again := Open(o, slog.New(slog.DiscardHandler)).Load()
	if !reflect.DeepEqual(again, known()) {
		t.Errorf("it was %+v and is %+v", known(), again)
	}
	if left, err := os.ReadDir(o.Slow.BaselineDir); err != nil || len(left) != 2 { // it and its key
		t.Errorf("in the folder are %v, %v", left, err)
	}
	harness.Check(t, os.Remove(filepath.Join(o.Slow.BaselineDir, keyName)))
	for _, e := range Open(o, slog.New(slog.DiscardHandler)).Load().Entries {
		if e.Configuration != "" || e.Build == "" {
			t.Errorf("under another key %s is of %+v", e.Key, e.Edition)
		}
	}
}

// A file that is not what was written is named, and learning starts again; the next save replaces it.
func TestBrokenBaselineIsRefusedByName(t *testing.T) {
	for name, spoil := range map[string]func(data []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"cut":       func(data []byte) []byte { return data[:len(data)/2] },
		"of zeros":  func(data []byte) []byte { return make([]byte, len(data)) },
		"other":     func([]byte) []byte { return []byte(`{"cniscope":"recording","version":2}`) },
		"newer":     func(data []byte) []byte { return bytes.Replace(data, []byte(`"version":1`), []byte(`"version":9`), 1) },
		"negative":  func(data []byte) []byte { return bytes.Replace(data, []byte(`"calls":[`), []byte(`"calls":[-5,`), 1) },
		"too large": func([]byte) []byte { return bytes.Repeat([]byte(" "), baseline.MaxBytes+1) },
	} {
		t.Run(name, func(t *testing.T) {
			o := folder(t)
			file := filepath.Join(o.Slow.BaselineDir, fileName)
			var log bytes.Buffer
			l := Open(o, slog.New(slog.NewTextHandler(&log, nil)))
			l.Save(t.Context(), known())
			data := harness.Must(os.ReadFile(file))(t)
			harness.Check(t, os.WriteFile(file, spoil(data), 0o600))
			if got := l.Load(); len(got.Entries) != 0 {
				t.Errorf("known is %+v", got)
			}
			harness.Says(t, log.String(), "baseline unreadable", fileName)
			l.Save(t.Context(), known())
			if again := l.Load(); len(again.Entries) != 3 {
				t.Errorf("written over it: %+v", again)
			}
		})
	}
}

// A disk that hangs delays no other part, and a late write to it overwrites nothing.
func TestBaselineOnADiskThatHangs(t *testing.T) {
	o := folder(t)
	var log bytes.Buffer
	l := Open(o, slog.New(slog.NewTextHandler(&log, nil)))
	l.writing <- struct{}{} // a write is waiting for the disk
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.Save(ctx, known())
	harness.Says(t, log.String(), "the disk does not answer")
	<-l.writing
	l.Save(t.Context(), known())
	if got := l.Load(); len(got.Entries) != 3 {
		t.Errorf("afterwards %d are known", len(got.Entries))
	}
}
