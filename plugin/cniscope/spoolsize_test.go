package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
)

// spoolHeader is what the spool adds to an operation's spans (docs/spool.md counts it in).
const spoolHeader = 32

// size is what a pod of a recording costs on average.
type size struct{ spans, bytes, zipped, pods int }

// perPod returns what each pod of a recording costs, also with trace.fold_commands. Each operation is zipped by itself,
// as it is where pods come now and then.
func perPod(t *testing.T, recording string, fold bool) size {
	t.Helper()
	var all size
	pods := map[string]bool{}
	for _, r := range resultsOf(t, recording) {
		if r.Operation.ContainerID == "" {
			continue
		}
		pods[r.Operation.ContainerID] = true
		spans := r.Read()
		if fold {
			spans = trace.Fold(spans)
		}
		data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{spans}})
		harness.Check(t, err)
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		_, err = z.Write(data)
		harness.Check(t, errors.Join(err, z.Close()))
		all.spans += len(spans.ScopeSpans[0].Spans)
		all.bytes += len(data)
		all.zipped += out.Len()
	}
	n := len(pods)
	if n == 0 {
		t.Fatalf("%s has no pods", recording)
	}
	return size{(all.spans + n/2) / n, all.bytes / n, all.zipped / n, n}
}

// fit is how many such pods, of two operations each, the spool holds.
func (s size) fit() int {
	return int(config.Default().Export.Spool.MaxBytes) / (s.bytes + 2*spoolHeader) / 100 * 100
}

// An ordinary pod (loopback, bridge, host-local, portmap) is cheap with trace.fold_commands, and the documents say how cheap.
func TestAFoldedPodIsCheap(t *testing.T) {
	one := perPod(t, ordinaryPod, true)
	if one.pods != 1 || one.spans > 25 || one.bytes > 20_000 || one.zipped > 5_000 {
		t.Errorf("an ordinary pod costs %+v", one)
	}
	said := fmt.Sprintf("%d spans, %d KB, %.1f KB with gzip", one.spans, (one.bytes+500)/1000, float64(one.zipped)/1000)
	for _, page := range []string{"README.md", "docs/performance.md", "docs/spans.md"} {
		if !strings.Contains(document(t, page), said) {
			t.Errorf("%s does not say %q", page, said)
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([\\d,]+) \\| ([\\d.]+) KB \\| ([\\d.]+) KB \\| ([\\d,]+) \\|$").FindAllStringSubmatch(document(t, "docs/spool.md"), -1)
	if len(rows) < 3 {
		t.Fatal("docs/spool.md has no table of folded recordings")
	}
	for _, row := range rows {
		each := perPod(t, "../../"+row[1], true)
		want := fmt.Sprintf("%d | %.1f KB | %.1f KB | %d", each.spans, float64(each.bytes)/1000, float64(each.zipped)/1000, each.fit())
		harness.Equal(t, strings.ReplaceAll(fmt.Sprintf("%s | %s KB | %s KB | %s", row[2], row[3], row[4], row[5]), ",", ""), want, row[1])
	}
}

// ordinaryPod is a recording of one pod with loopback, bridge, host-local and portmap.
const ordinaryPod = "testdata/ordinary-pod.rec.gz"

// How many pods the spool holds is what docs/spool.md and cniscope.toml say.
func TestTheSpoolHoldsAsManyPodsAsTheDocumentsSay(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)`.* \\| ([\\d,]+) \\| ([\\d,]+) \\| ([\\d,]+) KB \\| ([\\d,]+) \\|$").FindAllStringSubmatch(document(t, "docs/spool.md"), -1)
	if len(rows) < 2 {
		t.Fatal("docs/spool.md has no table of recordings")
	}
	number := func(text string) int {
		return harness.Must(strconv.Atoi(strings.ReplaceAll(text, ",", "")))(t)
	}
	fewest, most := math.MaxInt, 0
	var spans, kilobytes []int
	for _, row := range rows {
		each := perPod(t, "../../"+row[1], false)
		stored := (each.bytes + 2*spoolHeader + 500) / 1000
		if number(row[2]) != each.pods || number(row[3]) != each.spans || number(row[4]) != stored || number(row[5]) != each.fit() {
			t.Errorf("%s: %+v, %d KB in the spool, %d of them fit; docs/spool.md says %s", row[1], each, stored, each.fit(), row[0])
		}
		fewest, most = min(fewest, each.fit()), max(most, each.fit())
		spans, kilobytes = append(spans, each.spans), append(kilobytes, stored)
	}
	if said := fmt.Sprintf("256MiB hold %d to %d ordinary pods", fewest, most); !strings.Contains(document(t, "configs/cniscope.toml"), said) {
		t.Errorf("configs/cniscope.toml does not say %q", said)
	}
	said := fmt.Sprintf("%d to %d spans a pod, %d to %d KB of OTLP", slices.Min(spans), slices.Max(spans), slices.Min(kilobytes), slices.Max(kilobytes))
	if !strings.Contains(document(t, "docs/performance.md"), said) {
		t.Errorf("docs/performance.md does not say %q", said)
	}
}
