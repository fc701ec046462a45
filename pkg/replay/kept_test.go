package replay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/settings"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/etwtest"
	"github.com/cniscope/cniscope/test/harness"
)

// However many there are: each is there as often as it is asked for, in order of its start,
// with what came later, and nothing is left behind.
func TestOperationsAreKeptOnDiskWhereTheyAreMany(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for name, long := range map[string]int{"in memory": 10, "on disk": 200_000} {
		t.Run(name, func(t *testing.T) {
			k := &kept{}
			const n = 300
			for i := range n {
				op := &model.Operation{ContainerID: fmt.Sprint(i), Start: int64(i ^ 1)} // pairs change places
				results := []pipeline.Result{&pipeline.Judged{Operation: op, Trace: spansOf(fmt.Sprint(i), strings.Repeat("x", long))}}
				if i%3 == 0 {
					results = append(results, &pipeline.Connected{
						Connected: model.Connected{Flight: model.Flight{Operation: op.Key()}}, Trace: spansOf("later"),
					})
				}
				for _, r := range results {
					harness.Check(t, k.keep(r))
				}
			}
			harness.Check(t, k.seal())
			if onDisk := k.file != nil; onDisk != (name == "on disk") || len(k.memory) > keptInMemory {
				t.Errorf("on disk: %t, %d bytes in memory", onDisk, len(k.memory))
			}
			for range 2 {
				i := 0
				for spans := range k.Operations() {
					all := spans.ScopeSpans[0].Spans
					if want := fmt.Sprint(i ^ 1); all[0].Name != want || len(all[1].Name) != long || (len(all) == 3) != ((i^1)%3 == 0) {
						t.Fatalf("operation %d is %s with %d spans", i, all[0].Name, len(all))
					}
					i++
				}
				if i != n || k.failed != nil {
					t.Errorf("%d operations, %v", i, k.failed)
				}
			}
			k.Close()
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
	k := &kept{}
	t.Setenv("TMPDIR", filepath.Join(dir, "nowhere"))
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		err = k.keep(&pipeline.Judged{Operation: &model.Operation{}, Trace: spansOf(strings.Repeat("x", 1<<20))})
	}
	harness.Says(t, fmt.Sprint(err), "TMPDIR names another folder")
}

func TestOfARecordingSoManyOperationsAreKept(t *testing.T) {
	k := &kept{}
	var err error
	n := 0
	for ; err == nil && n <= 2*keptOperations; n++ {
		err = k.keep(&pipeline.Judged{Operation: &model.Operation{}, Trace: spansOf("x")})
	}
	if n-1 != keptOperations || !strings.Contains(err.Error(), "more than 25000 operations") {
		t.Errorf("%d were kept: %v", n-1, err)
	}
}

// Also if --timeout ends while open operations are judged.
func TestTheFirstReasonOfAnEndCounts(t *testing.T) {
	reader := harness.Must(open(t.Context(), "../../examples/recordings/three-pods.rec"))(t)
	defer reader.Close()
	ctx, end := context.WithCancelCause(t.Context())
	full := errors.New("more than 25000 operations")
	err := Each(ctx, reader, settings.Of(config.Default(), "boot", "test"), math.MaxUint64, func(pipeline.Result) error {
		end(lateError{1})
		return full
	})
	if !isPart(err) || !errors.Is(err, full) {
		t.Errorf("it ended with %v", err)
	}
}

func TestALargeOperationIsLeftOut(t *testing.T) {
	k := &kept{}
	harness.Check(t, k.keep(&pipeline.Judged{Operation: &model.Operation{}, Trace: spansOf(strings.Repeat("x", largestKept))}))
	if k.large != 1 || len(k.places) != 0 {
		t.Errorf("%d large ones, %d kept", k.large, len(k.places))
	}
}

func spansOf(names ...string) trace.Trace {
	all := &tracepb.ScopeSpans{}
	for _, name := range names {
		all.Spans = append(all.Spans, &tracepb.Span{Name: name})
	}
	return trace.Trace{Spans: &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{all}}}
}

// A recording of three pods is read, judged, drawn and encoded. The budget is 5 % above the count, which no load moves.
func TestAllocationsForAPodAreWithinTheBudget(t *testing.T) {
	const pods, budget = 3, 27_260
	all := testing.AllocsPerRun(2, func() {
		reader := harness.Must(open(t.Context(), "../../examples/recordings/three-pods.rec"))(t)
		defer reader.Close()
		s := settings.Of(config.Default(), "boot", "test")
		s.Judge.Ratio = 1
		harness.Check(t, Each(t.Context(), reader, s, math.MaxUint64, func(r pipeline.Result) (err error) {
			if all := r.Drawn(); all.Spans != nil {
				_, err = all.Encoded()
			}
			return err
		}))
	})
	if all/pods > budget {
		t.Errorf("%.0f allocations for a pod, budget %d", all/pods, budget)
	}
}

// Whatever is a trace is drawn, or refused with a reason.
func FuzzTrace(f *testing.F) {
	n := etwtest.Seed()
	n.Log(95, "RunPodSandbox for &PodSandboxMetadata{Name:db,Uid:u1,Namespace:shop,Attempt:0,}", "")
	n.Log(9600, "RunPodSandbox for &PodSandboxMetadata{Name:db,Uid:u1,Namespace:shop,Attempt:0,} failed, error",
		`sandbox "e36af093c59191cbb1d34875fb0a27cb"`)
	file := n.File()
	f.Add(file.Bytes())
	file.Compress, file.Size = false, 8192
	f.Add(file.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		trace := &windowsTrace{}
		made, err := trace.recording(bufio.NewReader(bytes.NewReader(data)))
		if err != nil || made == nil {
			return
		}
		r := harness.Must(record.NewReader(made))(t)
		s, said, err := settings.In(r.Header())
		if err != nil || len(said) > 0 {
			t.Fatal(said, err)
		}
		operations := 0
		err = Each(t.Context(), r, s, math.MaxUint64, func(result pipeline.Result) error {
			if _, is := result.(*pipeline.Judged); is {
				operations++
			}
			return nil
		})
		if bound := (*record.BoundError)(nil); err != nil && !errors.As(err, &bound) {
			t.Fatal(err)
		}
	})
}

func TestGapsOfATraceAreSaid(t *testing.T) {
	file := etwtest.Seed().File()
	file.EventsLost, file.BuffersLost = 5, 6
	path := filepath.Join(t.TempDir(), "incident.etl")
	harness.Check(t, os.WriteFile(path, file.Bytes(), 0o600))
	r := harness.Must(Load(t.Context(), path, Options{}))(t)
	defer r.Close()
	const gaps = "Windows lost 5 events and 6 buffers, and 0 buffers are unreadable"
	harness.Says(t, strings.Join(r.Remarks(), "\n"), gaps)
	harness.Says(t, r.Incomplete().Error(), gaps)
}
