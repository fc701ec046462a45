package kernels

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/pkg/timeline"
	"github.com/cniscope/cniscope/pkg/trace"
	"github.com/cniscope/cniscope/test/harness"
)

// A plugin's trace is the same with functions and with system calls.
func TestBothWaysGiveTheSameSpans(t *testing.T) {
	rounds := 1
	if more, err := strconv.Atoi(os.Getenv("CNISCOPE_ROUNDS")); err == nil {
		rounds = more
	}
	for _, name := range []string{"6.12", "newest"} {
		t.Run(name, func(t *testing.T) {
			k := named(name)
			k.options = fmt.Sprintf("cniscope.compare=%d", rounds)
			// Preempted BPF programs skip runs in either way, but not in every boot.
			var found map[string]string
			for boot := 1; ; boot++ {
				missed, now := compareWays(t, k)
				if boot > 1 {
					maps.DeleteFunc(now, func(what, _ string) bool { return found[what] == "" })
				}
				if found = now; len(found) == 0 {
					return
				}
				said := strings.Join(slices.Sorted(maps.Values(found)), "\n")
				if len(missed) == 0 && !inOrderOnly(found) || boot == boots {
					t.Fatal(said)
				}
				t.Logf("boot %d: %s", boot, said)
			}
		})
	}
}

// inOrderOnly reports whether only the order differs, which is undetermined for waits within microseconds.
func inOrderOnly(faults map[string]string) bool {
	for _, said := range faults {
		if !strings.HasPrefix(said, "line ") {
			return false
		}
	}
	return true
}

// number matches values that differ between boots: processes, namespaces, lines.
var number = regexp.MustCompile(`\d+`)

// compareWays boots a machine with both ways and returns skipped programs and differences by stable text.
func compareWays(t *testing.T, k kernel) (missed []string, faults map[string]string) {
	t.Helper()
	r := boot(t, k)
	all, others := recorded(t, r, "functions"), recorded(t, r, "system-calls")
	a, b := leaveOut(all, others, missedBy("system-calls", r.missed)), leaveOut(others, all, missedBy("functions", r.missed))
	_, _, waits, left := reconcile(a, b)
	t.Logf("%d and %d events, %d and %d ioctls left out; %d waits told in both ways, %d left out",
		len(all), len(others), len(all)-len(a), len(others)-len(b), waits, left)
	faults = map[string]string{}
	for _, fault := range unlike(a, b) {
		faults[number.ReplaceAllString(fault, "#")] = fault
	}
	return r.missed, faults
}

// Stored recordings of both ways give the same spans, and a difference is found.
func TestRecordingsOfBothWaysGiveTheSameSpans(t *testing.T) {
	way := func(name string) []event.Event {
		recording := harness.Must(os.ReadFile(filepath.Join("testdata/ways", name+".rec.gz")))(t)
		return eventsOf(t, recording)
	}
	byFunctions, bySystemCalls := way("functions"), way("system-calls")
	if faults := unlike(byFunctions, bySystemCalls); len(faults) > 0 {
		t.Fatal(strings.Join(faults, "\n"))
	}
	for name, is := range map[string]func(event.Body) bool{
		"request":    func(b event.Body) bool { _, is := b.(*event.Request); return is },
		"connection": func(b event.Body) bool { c, is := b.(*event.Connect); return is && c.Error == "" },
		"namespace":  func(b event.Body) bool { _, is := b.(*event.Enter); return is },
		"lock": func(b event.Body) bool {
			w, is := b.(*event.Wait)
			return is && w.Kind == event.WaitLock && w.Holder != nil
		},
		"sleep":  func(b event.Body) bool { w, is := b.(*event.Wait); return is && w.Kind == event.WaitSleep },
		"result": func(b event.Body) bool { r, is := b.(*event.Result); return is && len(r.IPs) > 0 },
	} {
		for way, events := range map[string]*[]event.Event{"functions": &byFunctions, "system calls": &bySystemCalls} {
			whole := *events
			i := slices.IndexFunc(whole, func(e event.Event) bool { return is(e.Body) })
			if i < 0 {
				t.Fatalf("no %s by %s", name, way)
			}
			*events = slices.Delete(slices.Clone(whole), i, i+1)
			if len(unlike(byFunctions, bySystemCalls)) == 0 {
				t.Errorf("nobody notices that by %s a %s is missing", way, name)
			}
			*events = whole
		}
	}
}

func unlike(byFunctions, bySystemCalls []event.Event) (faults []string) {
	a, b, waits, left := reconcile(byFunctions, bySystemCalls)
	if waits < left {
		faults = append(faults, "more waits were left out than told in both ways")
	}
	x, y := spansOf(a), spansOf(b)
	for _, kind := range []string{"call", "run", "delegate", "command", "lock", "wait", "request", "interface", "sysctl", "agent"} {
		if !slices.ContainsFunc(x, func(line string) bool { return strings.Contains(line, fmt.Sprintf("cniscope.kind=%q", kind)) }) {
			faults = append(faults, "no span of kind "+kind)
		}
	}
	return append(faults, differences(x, y)...)
}

// recorded returns the recording of a way; CNISCOPE_RECORDINGS=DIR keeps it.
func recorded(t *testing.T, r reported, way string) (all []event.Event) {
	t.Helper()
	var text strings.Builder
	for _, line := range r.said["recorded"] {
		if more, is := strings.CutPrefix(line, way+" "); is {
			text.WriteString(more)
		}
	}
	recording, err := base64.StdEncoding.DecodeString(text.String())
	if folder := os.Getenv("CNISCOPE_RECORDINGS"); err == nil && folder != "" {
		err = os.WriteFile(filepath.Join(folder, way+".rec.gz"), recording, 0o600)
	}
	harness.Check(t, err)
	return eventsOf(t, recording)
}

func eventsOf(t *testing.T, recording []byte) (all []event.Event) {
	t.Helper()
	r := harness.Must(record.NewReader(bytes.NewReader(recording)))(t)
	defer r.Close()
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		harness.Check(t, err)
		all = append(all, e)
	}
}

// spansOf returns the spans of all calls as lines, without a minimum duration, which would depend on the clock.
func spansOf(events []event.Event) (all []string) {
	l := config.Default().Limits
	p := pipeline.New(timeline.Options{
		Settle: l.Settle, MaxHold: l.MaxHold, Processes: l.Processes, Operations: l.Operations, Images: l.Images, Facts: l.Facts,
	}, judge.Options{Sampling: judge.Sampling{All: true}}, trace.NewBuilder(trace.IDs{}, nil, ""))
	take := func(r pipeline.Result) {
		if drawn := r.Drawn(); drawn.Spans != nil {
			all = append(all, lines(drawn.Read())...)
		}
	}
	for _, e := range events {
		p.Each(e, take)
	}
	p.FlushEach(take)
	return all
}

// lines formats spans in order with their parents, without values of clocks.
func lines(spans *tracepb.ResourceSpans) (all []string) {
	names := map[string]string{}
	for _, scope := range spans.ScopeSpans {
		for _, s := range scope.Spans {
			path := s.Name
			if above := names[string(s.ParentSpanId)]; above != "" {
				path = above + " > " + path
			}
			names[string(s.SpanId)] = path
			all = append(all, fmt.Sprintf("%s %s %s", path, attributes(s.Attributes), without(strings.TrimSpace(s.Status.GetMessage()))))
			for _, e := range s.Events {
				all = append(all, fmt.Sprintf("%s: %s %s", path, e.Name, attributes(e.Attributes)))
			}
		}
	}
	return all
}

var duration = regexp.MustCompile(`\b\d+(\.\d+)? ?(ns|µs|ms|s)\b`)

func without(text string) string { return duration.ReplaceAllString(text, "…") }

func attributes(all []*commonpb.KeyValue) string {
	said := make([]string, 0, len(all))
	for _, kv := range all {
		if strings.HasSuffix(kv.Key, "_ms") {
			said = append(said, kv.Key)
			continue
		}
		said = append(said, kv.Key+"="+without(value(kv.Value)))
	}
	slices.Sort(said)
	return strings.Join(said, " ")
}

func value(v *commonpb.AnyValue) string {
	if list := v.GetArrayValue(); list != nil {
		all := make([]string, 0, len(list.Values))
		for _, one := range list.Values {
			all = append(all, value(one))
		}
		return fmt.Sprintf("%q", all)
	}
	switch x := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return fmt.Sprintf("%q", x.StringValue)
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(x.IntValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(x.BoolValue)
	}
	return fmt.Sprint(v)
}

func differences(byFunctions, bySystemCalls []string) (all []string) {
	for _, line := range byFunctions {
		if !slices.Contains(bySystemCalls, line) {
			all = append(all, "only by functions: "+line)
		}
	}
	for _, line := range bySystemCalls {
		if !slices.Contains(byFunctions, line) {
			all = append(all, "only by system calls: "+line)
		}
	}
	if len(all) > 0 || slices.Equal(byFunctions, bySystemCalls) {
		return all
	}
	for i := range min(len(byFunctions), len(bySystemCalls)) {
		if byFunctions[i] != bySystemCalls[i] {
			return []string{fmt.Sprintf("line %d by functions: %s\nby system calls: %s", i, byFunctions[i], bySystemCalls[i])}
		}
	}
	return []string{fmt.Sprintf("%d lines by functions, %d by system calls", len(byFunctions), len(bySystemCalls))}
}
