package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/attr"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
)

// spoolHeader is what the spool adds to an operation's spans (docs/spool.md counts it in).
const spoolHeader = 32

// perPod returns what the spool holds of each pod of a recording, on average, and how many pods that are.
func perPod(t *testing.T, recording string) (bytes, spans, pods int) {
	t.Helper()
	all := map[string]bool{}
	for _, r := range resultsOf(t, recording) {
		if r.Operation.ContainerID == "" {
			continue
		}
		all[r.Operation.ContainerID] = true
		for _, scope := range r.Spans.ScopeSpans {
			spans += len(scope.Spans)
		}
		bytes += spoolHeader + proto.Size(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{r.Spans}})
	}
	if len(all) == 0 {
		t.Fatalf("%s has no pods", recording)
	}
	return bytes / len(all), (spans + len(all)/2) / len(all), len(all)
}

// size is what a pod of a recording costs.
type size struct{ spans, bytes, zipped, pods int }

// foldedPerPod returns what each pod of a recording costs with trace.fold_commands, on average. Each operation is
// zipped by itself, as it is where pods come now and then.
func foldedPerPod(t *testing.T, recording string) size {
	t.Helper()
	var all size
	pods := map[string]bool{}
	for _, spans := range operationsOf(t, recording) {
		uid := ""
		for _, kv := range spans.Resource.Attributes {
			if kv.Key == string(attr.SandboxIDKey) {
				uid = kv.Value.GetStringValue()
			}
		}
		if uid == "" {
			continue
		}
		pods[uid] = true
		folded := trace.Fold(spans)
		data, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{folded}})
		harness.Check(t, err)
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		if _, err := z.Write(data); err != nil || z.Close() != nil {
			t.Fatal(err)
		}
		all.spans += len(folded.ScopeSpans[0].Spans)
		all.bytes += len(data)
		all.zipped += out.Len()
	}
	n := len(pods)
	return size{(all.spans + n/2) / n, all.bytes / n, all.zipped / n, n}
}

// An ordinary pod (loopback, bridge, host-local, portmap) is cheap with trace.fold_commands, and the documents say how cheap.
func TestAFoldedPodIsCheap(t *testing.T) {
	one := foldedPerPod(t, ordinaryPod)
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
		each := foldedPerPod(t, "../../"+row[1])
		fit := int(config.Default().Export.Spool.MaxBytes) / (each.bytes + 2*spoolHeader) / 100 * 100
		want := fmt.Sprintf("%d | %.1f KB | %.1f KB | %d", each.spans, float64(each.bytes)/1000, float64(each.zipped)/1000, fit)
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
		n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
		harness.Check(t, err)
		return n
	}
	fewest, most := math.MaxInt, 0
	var spans, kilobytes []int
	for _, row := range rows {
		each, n, pods := perPod(t, "../../"+row[1])
		fit := int(config.Default().Export.Spool.MaxBytes) / each / 100 * 100
		if number(row[2]) != pods || number(row[3]) != n || number(row[4]) != (each+500)/1000 || number(row[5]) != fit {
			t.Errorf("%s: %d pods, %d spans and %d KB each, %d of them fit; docs/spool.md says %s", row[1], pods, n, (each+500)/1000, fit, row[0])
		}
		fewest, most = min(fewest, fit), max(most, fit)
		spans, kilobytes = append(spans, n), append(kilobytes, (each+500)/1000)
	}
	if said := fmt.Sprintf("256MiB hold %d to %d ordinary pods", fewest, most); !strings.Contains(document(t, "configs/cniscope.toml"), said) {
		t.Errorf("configs/cniscope.toml does not say %q", said)
	}
	said := fmt.Sprintf("%d to %d spans a pod, %d to %d KB of OTLP", slices.Min(spans), slices.Max(spans), slices.Min(kilobytes), slices.Max(kilobytes))
	if !strings.Contains(document(t, "docs/performance.md"), said) {
		t.Errorf("docs/performance.md does not say %q", said)
	}
}
