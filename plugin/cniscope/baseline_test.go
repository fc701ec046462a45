package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/settings"
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
pods     bridge   ADD             2,315  95.1ms  95.1ms  slower than usual now: 480.6ms
pods     bridge   ADD   iptables  980    2.99ms  2.99ms
pods     portmap  ADD             7      8.98ms  8.98ms  known from 300 calls on
`
	var out bytes.Buffer
	if err := newBaselineDocument(knownUsual().Book()).text(&out); err != nil {
		t.Fatal(err)
	}
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
		if err := indented(&out, newBaselineDocument(d.Book())); err != nil {
			t.Fatal(err)
		}
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

func TestBaselineIsKeptOverARestart(t *testing.T) {
	o := folder(t)
	newLearnt(o, slog.New(slog.DiscardHandler)).save(t.Context(), knownUsual())
	again := newLearnt(o, slog.New(slog.DiscardHandler)).load()
	if !reflect.DeepEqual(again, knownUsual()) {
		t.Errorf("it was %+v and is %+v", knownUsual(), again)
	}
	if left, err := os.ReadDir(o.Slow.BaselineDir); err != nil || len(left) != 2 { // it and its key
		t.Errorf("in the folder are %v, %v", left, err)
	}
	if err := os.Remove(filepath.Join(o.Slow.BaselineDir, keyName)); err != nil {
		t.Fatal(err)
	}
	for _, e := range newLearnt(o, slog.New(slog.DiscardHandler)).load().Entries {
		if e.Configuration != "" || e.Build == "" {
			t.Errorf("under another key %s is of %+v", e.Key, e.Edition)
		}
	}
}

// Whether anything is learnt may change while cniscope runs: what was kept is known then, and what is known is kept,
// and recorded.
func TestBaselineIsSwitchedOn(t *testing.T) {
	o := folder(t)
	quiet := slog.New(slog.DiscardHandler)
	newLearnt(o, quiet).save(t.Context(), knownUsual())
	kept := knownUsual()
	o.Slow.Baseline = false
	n, err := newNode(o, quiet, &slog.LevelVar{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want *baseline.Document, size int) {
		t.Helper()
		var s settings.Settings
		n.consumers.leave(n.join(&stream{}, &s))
		n.leaveLearnt(t.Context())
		if !reflect.DeepEqual(s.Baseline, want) || n.pipeline.Usual.Len() != size || s.Judge.Baseline != (want != nil) {
			t.Errorf("%s %d are known, and recorded are %+v", when, n.pipeline.Usual.Len(), s.Baseline)
		}
		if again := newLearnt(o, quiet).load(); !reflect.DeepEqual(again, kept) {
			t.Errorf("%s there is kept %+v", when, again)
		}
	}
	expect("switched off", nil, 0)
	o.Slow.Baseline = true
	n.apply(o)
	expect("switched on", kept, 3)
	n.pipeline.Usual.Take(baseline.Call{Key: baseline.Key{Plugin: "flannel", Command: "ADD"}, Took: 1000}, 0)
	kept = n.pipeline.Usual.Document()
	expect("once more is known", kept, 4)
	o.Slow.Baseline = false
	n.apply(o)
	n.pipeline.Usual.Take(baseline.Call{Key: baseline.Key{Plugin: "flannel", Command: "DEL"}, Took: 1000}, 0)
	expect("switched off again", nil, 5)
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
			file := filepath.Join(o.Slow.BaselineDir, learntName)
			var log bytes.Buffer
			l := newLearnt(o, slog.New(slog.NewTextHandler(&log, nil)))
			l.save(t.Context(), knownUsual())
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, spoil(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := l.load(); len(got.Entries) != 0 {
				t.Errorf("known is %+v", got)
			}
			if !strings.Contains(log.String(), "baseline unreadable") || !strings.Contains(log.String(), learntName) {
				t.Errorf("the log says %q", log.String())
			}
			l.save(t.Context(), knownUsual())
			if again := l.load(); len(again.Entries) != 3 {
				t.Errorf("written over it: %+v", again)
			}
		})
	}
}

// A disk that hangs delays no other part, and a late write to it overwrites nothing.
func TestBaselineOnADiskThatHangs(t *testing.T) {
	o := folder(t)
	var log bytes.Buffer
	l := newLearnt(o, slog.New(slog.NewTextHandler(&log, nil)))
	l.writing <- struct{}{} // a write is waiting for the disk
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.save(ctx, knownUsual())
	if !strings.Contains(log.String(), "the disk does not answer") {
		t.Errorf("the log says %q", log.String())
	}
	<-l.writing
	l.save(t.Context(), knownUsual())
	if got := l.load(); len(got.Entries) != 3 {
		t.Errorf("afterwards %d are known", len(got.Entries))
	}
}

func TestImportedBaseline(t *testing.T) {
	o, file := folder(t), filepath.Join(t.TempDir(), "usual.json")
	if err := exportBaseline(io.Discard, knownUsual().Foreign(), file); err != nil {
		t.Fatal(err)
	}
	if err := exportBaseline(io.Discard, knownUsual(), file); err == nil {
		t.Error("a file that exists is written over")
	}
	if err := importBaseline(io.Discard, o, file); err != nil {
		t.Fatal(err)
	}
	rows := newBaselineDocument(newLearnt(o, slog.New(slog.DiscardHandler)).load().Book()).Baselines
	if len(rows) != 2 || !rows[0].Confident || rows[0].Slower || rows[0].Calls != 2315 || rows[0].Configuration != "" {
		t.Errorf("known is %+v", rows)
	}
	o.Slow.BaselineDir = ""
	if err := importBaseline(io.Discard, o, file); err == nil || !strings.Contains(err.Error(), "baseline_dir") {
		t.Errorf("where nothing is kept: %v", err)
	}
}
