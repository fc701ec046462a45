package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/spool"
	"github.com/cniscope/cniscope/test/harness"
)

// cniscope runs a command and returns what it prints.
func cniscope(t *testing.T, args ...string) (out, diagnostics string, err error) {
	t.Helper()
	var o, d bytes.Buffer
	cmd := rootCmd()
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&o)
	cmd.SetErr(&d)
	err = cmd.ExecuteContext(t.Context())
	return o.String(), d.String(), err
}

// spooled fills a spool with what a recording gives, as a running cniscope would, and
// leaves it open as one.
func spooled(t *testing.T, recording string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := harness.Must(spool.Open(spool.Options{Dir: dir, MaxBytes: 64 << 20, MaxAge: 365 * 24 * time.Hour}))(t)
	t.Cleanup(func() { _ = s.Close() })
	results := resultsOf(t, recording)
	for i, r := range results {
		data := harness.Must(proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{r.Spans}}))(t)
		end := time.Now().Add(time.Duration(i-len(results)) * time.Hour)
		if _, err := s.Append(spool.Operation{Start: end, End: end, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const threePods = recordings + "/three-pods.rec"

// What the node has kept is drawn as a recording of it would be.
func TestShowLastDrawsWhatWasKept(t *testing.T) {
	t.Setenv("COLUMNS", "")
	dir := spooled(t, threePods)
	for _, args := range [][]string{
		{"--format", "json"},
		{"--pod", "shop/slow-0"},
		{"--pod", "slow-0", "--all-commands"},
		{"--problems", "--format", "json"},
	} {
		want, _, err := cniscope(t, append([]string{"show", threePods}, args...)...)
		harness.Check(t, err)
		got, diagnostics, err := cniscope(t, append([]string{"show", "--last", "1000h", "--spool", dir}, args...)...)
		if err != nil || diagnostics != "" {
			t.Fatalf("%v, %s", err, diagnostics)
		}
		// The order is that of their ends, not of their beginnings.
		for line := range strings.Lines(want) {
			if !strings.Contains(got, line) {
				t.Fatalf("%q: missing: %s\nin: %s", args, line, got)
			}
		}
		if len(got) != len(want) || got == "" {
			t.Errorf("%q: %d bytes, want %d", args, len(got), len(want))
		}
	}
}

func TestShowLastGoesBackAsFarAsAsked(t *testing.T) {
	dir := spooled(t, threePods)
	count := func(last string) int {
		out, _, err := cniscope(t, "show", "--last", last, "--spool", dir, "--format", "json")
		harness.Check(t, err)
		return strings.Count(out, "\n")
	}
	if a, b, all := count("90m"), count("150m"), count("1000h"); a != 1 || b != 2 || all < 3 {
		t.Errorf("%d, %d, %d", a, b, all)
	}
	out, diagnostics, err := cniscope(t, "show", "--last", "10m", "--spool", dir)
	if err != nil || out != "" || !strings.Contains(diagnostics, "there is no CNI call that was kept in the last 10m0s") {
		t.Errorf("%v, %q, %q", err, out, diagnostics)
	}
}

func TestShowLastFindsTheSpoolByTheOptions(t *testing.T) {
	dir := spooled(t, threePods)
	options := filepath.Join(t.TempDir(), "cniscope.toml")
	write := func(text string) {
		harness.Check(t, os.WriteFile(options, []byte(text), 0o600))
	}
	write("[export.spool]\ndir = \"" + dir + "\"\n")
	out, _, err := cniscope(t, "show", "--last", "1000h", "--config", options)
	if err != nil || !strings.Contains(out, "shop/slow-0") {
		t.Errorf("%v, %s", err, out)
	}
	write("")
	if _, _, err = cniscope(t, "show", "--last", "1h", "--config", options); err == nil ||
		!strings.Contains(err.Error(), "found neither a spool ([export.spool] dir in ") {
		t.Errorf("%v", err)
	}
	write("[export.spool]\ndir = \"" + filepath.Join(dir, "none") + "\"\n")
	if _, _, err = cniscope(t, "show", "--last", "1h", "--config", options); err == nil || !strings.Contains(err.Error(), "no spool there") {
		t.Errorf("%v", err)
	}
}

func TestShowLastSaysWhatIsDamaged(t *testing.T) {
	dir := spooled(t, threePods)
	files, err := filepath.Glob(filepath.Join(dir, "*.segment"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	f := harness.Must(os.OpenFile(files[0], os.O_RDWR, 0))(t)
	defer f.Close()
	if _, err := f.WriteAt([]byte("garbage"), 100); err != nil {
		t.Fatal(err)
	}
	out, diagnostics, err := cniscope(t, "show", "--last", "1000h", "--spool", dir)
	if exitCode(err) != 3 || out == "" || strings.Count(diagnostics, "is damaged from byte 0") != 1 {
		t.Errorf("%v, %q", err, diagnostics)
	}
	// A limit that is crossed for certain is crossed, whatever else there is.
	if _, _, err = cniscope(t, "show", "--last", "1000h", "--spool", dir, "--max-call", "1ns"); exitCode(err) != 1 {
		t.Errorf("%v", err)
	}
}
