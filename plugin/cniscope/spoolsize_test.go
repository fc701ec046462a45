package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/pipeline"
)

// spoolHeader is what the spool adds to an operation's spans (docs/spool.md counts it in).
const spoolHeader = 32

// bytesPerPod returns what the spool holds of each pod of a recording, on average, and how many pods that are.
func bytesPerPod(t *testing.T, recording string) (each, pods int) {
	t.Helper()
	reader, err := openRecording(recording)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	in, _, err := settingsIn(reader.Header())
	if err != nil {
		t.Fatal(err)
	}
	in.Judge.All = true
	all, bytes := map[string]bool{}, 0
	if err := replay(t.Context(), reader, in, watch{}, func(r pipeline.Result) error {
		if !r.Over() || r.Operation.ContainerID == "" {
			return nil
		}
		all[r.Operation.ContainerID] = true
		bytes += spoolHeader + proto.Size(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{r.Trace.Spans}})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no pods", recording)
	}
	return bytes / len(all), len(all)
}

// How many pods the spool holds is what docs/spool.md and cniscope.toml say.
func TestTheSpoolHoldsAsManyPodsAsTheDocumentsSay(t *testing.T) {
	document, err := os.ReadFile("../../docs/spool.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)`.* \\| ([\\d,]+) \\| ([\\d,]+) KB \\| ([\\d,]+) \\|$").FindAllStringSubmatch(string(document), -1)
	if len(rows) < 2 {
		t.Fatal("docs/spool.md has no table of recordings")
	}
	number := func(text string) int {
		n, err := strconv.Atoi(strings.ReplaceAll(text, ",", ""))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	fewest, most := math.MaxInt, 0
	for _, row := range rows {
		each, pods := bytesPerPod(t, "../../"+row[1])
		fit := int(config.Default().Export.Spool.MaxBytes) / each / 100 * 100
		if number(row[2]) != pods || number(row[3]) != (each+500)/1000 || number(row[4]) != fit {
			t.Errorf("%s: %d pods, %d KB each, %d of them fit; docs/spool.md says %s", row[1], pods, (each+500)/1000, fit, row[0])
		}
		fewest, most = min(fewest, fit), max(most, fit)
	}
	options, err := os.ReadFile("../../configs/cniscope.toml")
	if err != nil {
		t.Fatal(err)
	}
	if said := fmt.Sprintf("256MiB hold %d to %d ordinary pods", fewest, most); !strings.Contains(string(options), said) {
		t.Errorf("configs/cniscope.toml does not say %q", said)
	}
}
