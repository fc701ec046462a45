package main

import (
	"bytes"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/command"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/node/learned"
	"github.com/cniscope/cniscope/test/harness"
)

// knownUsual is a baseline: a plugin that is slower than usual, its command that is not, and another of which too little
// is known.
func knownUsual() *baseline.Document {
	var b baseline.Book
	at := time.Date(2026, 11, 23, 14, 0, 0, 0, time.UTC).UnixNano()
	take := func(calls int, plugin, program string, took time.Duration) {
		for range calls {
			b.Take(baseline.Call{
				Key:     baseline.Key{Network: "pods", Plugin: plugin, Command: "ADD", Program: program},
				Edition: baseline.Edition{Build: "0123456789abcdef", Configuration: "18ac"}, Took: took, At: at,
			}, 100*time.Millisecond)
		}
	}
	take(2330, "bridge", "", 96*time.Millisecond)
	take(15, "bridge", "", 480*time.Millisecond)
	take(1000, "bridge", "iptables", 3*time.Millisecond)
	take(7, "portmap", "", 9*time.Millisecond)
	return b.Document()
}

func TestBaselineIsShown(t *testing.T) {
	const want = `
NETWORK  PLUGIN   CALL  COMMAND   CALLS  MEDIAN  P99
pods     bridge   ADD             2,315  95.1ms  95.1ms  slower than usual: median 480.6ms of the last 20 calls
pods     bridge   ADD   iptables  980    2.99ms  2.99ms
pods     portmap  ADD             7      8.98ms  8.98ms  known from 300 calls on
`
	var out bytes.Buffer
	harness.Check(t, newBaselineDocument(knownUsual().Book()).text(&out))
	var got strings.Builder
	for line := range strings.Lines(out.String()) {
		got.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if got.String() != want {
		t.Errorf("got:%s\nwant:%s", got.String(), want)
	}
}

func TestDocumentOfBaseline(t *testing.T) {
	for name, d := range map[string]*baseline.Document{"nothing": (&baseline.Book{}).Document(), "some": knownUsual(), "another node's": knownUsual().Foreign()} {
		var out bytes.Buffer
		harness.Check(t, command.Indented(&out, newBaselineDocument(d.Book())))
		valid(t, schema(t, "baseline"), name, out.Bytes())
		if strings.Contains(out.String(), "null") {
			t.Errorf("%s: null in %s", name, out.String())
		}
	}
}

// folder returns options that keep a baseline in a folder.
func folder(t *testing.T) config.Options {
	t.Helper()
	o := config.Default()
	o.State.Dir, o.Slow.BaselineDir = filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "baseline")
	return o
}

func TestImportedBaseline(t *testing.T) {
	o, file := folder(t), filepath.Join(t.TempDir(), "usual.json")
	harness.Check(t, exportBaseline(io.Discard, knownUsual().Foreign(), file))
	if err := exportBaseline(io.Discard, knownUsual(), file); err == nil {
		t.Error("a file that exists is written over")
	}
	harness.Check(t, importBaseline(io.Discard, o, file))
	rows := newBaselineDocument(learned.Open(o, slog.New(slog.DiscardHandler)).Load().Book()).Baselines
	if len(rows) != 2 || !rows[0].Confident || rows[0].Slower || rows[0].Calls != 2315 || rows[0].Configuration != "" {
		t.Errorf("known is %+v", rows)
	}
	o.Slow.BaselineDir = ""
	if err := importBaseline(io.Discard, o, file); err == nil || !strings.Contains(err.Error(), "baseline_dir") {
		t.Errorf("where nothing is kept: %v", err)
	}
}
