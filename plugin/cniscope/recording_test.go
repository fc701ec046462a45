package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/replay"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/pkg/show"
	"github.com/cniscope/cniscope/pkg/trace"
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

// resultsOf are a recording's operations, in the order they ended.
func resultsOf(t *testing.T, recording string) (all []*pipeline.Judged) {
	t.Helper()
	reader := harness.Must(record.Open(t.Context(), recording))(t)
	defer reader.Close()
	in, _, err := settings.In(reader.Header())
	harness.Check(t, err)
	in.Judge.All = true
	harness.Check(t, replay.Each(t.Context(), reader, in, math.MaxUint64, func(r pipeline.Result) error {
		if r, is := r.(*pipeline.Judged); is {
			all = append(all, r)
		}
		return nil
	}))
	return all
}

// operationsOf are the spans of a recording's operations.
func operationsOf(t *testing.T, recording string) (all []*tracepb.ResourceSpans) {
	t.Helper()
	for _, r := range resultsOf(t, recording) {
		all = append(all, r.Read())
	}
	return all
}

// Each recorded scenario has the same verdicts with fold_commands and without: no call's span differs, none that
// was slow or failed, and what is said of all of them in a list is the same.
func TestFoldingKeepsVerdicts(t *testing.T) {
	recorded := harness.Must(filepath.Glob("../../pkg/judge/testdata/*.rec.gz"))(t)
	examples := harness.Must(filepath.Glob(filepath.Join(recordings, "*.rec*")))(t)
	recorded = append(append(recorded, examples...), "../../docs/verdicts.rec.gz")
	verdicts := 0
	for _, file := range recorded {
		t.Run(filepath.Base(file), func(t *testing.T) {
			each := operationsOf(t, file)
			var few []*tracepb.ResourceSpans
			for _, spans := range each {
				few = append(few, trace.Fold(spans))
				verdicts += sameWhereItMatters(t, spans, few[len(few)-1])
			}
			if got, want := summed(t, slices.Values(few)), summed(t, slices.Values(each)); got != want {
				t.Errorf("folded, the list is another one: %s", firstDifference(got, want))
			}
		})
	}
	if verdicts < 50 {
		t.Errorf("only %d verdicts were seen", verdicts)
	}
}

func summed(t *testing.T, operations iter.Seq[*tracepb.ResourceSpans]) string {
	t.Helper()
	var out bytes.Buffer
	harness.Check(t, show.Summary(&out, operations, show.Options{Width: 120}))
	return out.String()
}

// sameWhereItMatters compares calls, and what was slow or failed, and returns the number of verdicts.
func sameWhereItMatters(t *testing.T, each, few *tracepb.ResourceSpans) (verdicts int) {
	t.Helper()
	now := map[string]*tracepb.Span{}
	for _, s := range few.ScopeSpans[0].Spans {
		now[string(s.SpanId)] = s
	}
	for _, s := range each.ScopeSpans[0].Spans {
		said := map[string]string{}
		for _, kv := range s.Attributes {
			said[kv.Key] = kv.Value.String()
		}
		call, slow := said[string(attr.KindKey)] == `string_value:"call"`, said[string(attr.SlowKey)] != ""
		if said[string(attr.VerdictKey)] != "" {
			verdicts++
		}
		if is := now[string(s.SpanId)]; (call || slow || s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR) && !proto.Equal(is, s) {
			t.Errorf("%s is now\n%v, was\n%v", s.Name, is, s)
		}
	}
	return verdicts
}

// A recording holds each command, whatever the node's options were: only who asks for it sees series.
func TestShowFoldsOnRequest(t *testing.T) {
	for _, c := range []struct {
		fold bool
		want string
	}{{false, "netlink NFT_MSG_DELCHAIN"}, {true, "sum 64.3ms  exit 1, exit 4  the longest 12.8ms"}} {
		var out bytes.Buffer
		t.Setenv("COLUMNS", "160")
		o := showOptions{format: "text", color: "never", all: true, fold: c.fold, pod: "shop/web-0"}
		harness.Check(t, showFile(t.Context(), &out, io.Discard, recordings+"/three-pods.rec", o))
		for _, other := range []string{"netlink NFT_MSG_DELCHAIN", "sum 64.3ms  exit 1, exit 4  the longest 12.8ms"} {
			if is := bytes.Contains(out.Bytes(), []byte(other)); is != (other == c.want) {
				t.Errorf("--fold-commands %t: %q is in it: %t\n%s", c.fold, other, is, out.String())
			}
		}
	}
}

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
