package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/config"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/test/harness"
)

// Whatever judges a live node judges its recording: nothing is lost on the way through the
// header, and what no options can be is not obeyed.
func TestSettingsThroughARecording(t *testing.T) {
	o, err := config.Parse("f.toml", []byte(`
[limits]
settle = "3s"
processes = 1000
operations = 100
images = 500
facts = 300
min_span = "2ms"
[slow]
command = "1s"
call = "3s"
agent = "4s"
lock = "5s"
hung = "6s"
first_connection = "9s"
rule = [{ command = "ip*", threshold = "7s" }]
[sampling]
ratio = 0.5
per_second = 7
keep = ["failed"]
annotation_namespaces = ["shop"]
rule = [{ namespace = "shop*", ratio = 0.25 }]
[trace]
fold_commands = true
[relay]
listen = "127.0.0.1:4319"
upstream = "http://127.0.0.1:4317"
wait = "2s"
[resource]
attributes = { a = "b" }
`))
	harness.Check(t, err)
	want := Of(o, "boot", "test")
	for name, v := range map[string]any{"Timeline": want.Timeline, "Judge": want.Judge} {
		for i := range reflect.TypeOf(v).NumField() {
			if field := reflect.TypeOf(v).Field(i).Name; reflect.ValueOf(v).Field(i).IsZero() && field != "All" {
				t.Errorf("%s.%s is not set by this test: teach it", name, field)
			}
		}
	}
	if !want.Fold {
		t.Error("Fold is not set by this test")
	}
	header := harness.Must(want.Header())(t)
	got, said, err := In(header)
	got.options = want.options // only those of the header are the same
	if err != nil || len(said) > 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %q\n got %+v\nwant %+v", err, said, got, want)
	}
	// The keys are those of 0.2, which reads what this version records.
	var carried map[string]map[string]json.RawMessage
	before := map[string]string{
		"timeline": "Facts Hung Images MaxHold MinSpan Operations Processes Settle Wait",
		"judge":    "Agent All Annotations Baseline Call Command Floor Keep Lock Namespaces PerSecond Ratio Rules",
		"node":     "Arch Attributes Cluster Host Instance Name OS Version",
	}
	options := bytes.Replace(header.Options, []byte(`"fold":true,`), nil, 1)
	harness.Check(t, json.Unmarshal(options, &carried))
	for section, keys := range before {
		harness.Equal(t, strings.Join(slices.Sorted(maps.Keys(carried[section])), " "), keys, section, "has")
	}
	harness.Equal(t, string(carried["judge"]["Rules"]), `[{"Pattern":"ip*","Threshold":7000000000}]`, "a rule is")

	// Options that have no effect any more have one in recordings that were made with them.
	other := `{"timeline":{"MaxHold":300000000000},"judge":{"Floor":7000000}}`
	got, said, err = In(record.Header{Options: []byte(other)})
	if err != nil || len(said) > 0 || got.Timeline.MaxHold != 5*time.Minute || got.Judge.Floor != 7*time.Millisecond {
		t.Errorf("%v, %q: %+v %+v", err, said, got.Timeline, got.Judge)
	}

	got, said, err = In(record.Header{Options: []byte(`{"timeline":{"MaxHold":-1,"Processes":100000000,"Operations":100000000,"Spans":-3}}`)})
	if err != nil || got.Timeline != Of(config.Default(), "", "test").Timeline {
		t.Errorf("%v: %+v", err, got.Timeline)
	}
	if all := strings.Join(said, "\n"); len(said) != 5 || !strings.Contains(all, "limits.operations = 100000000 cannot be; the default 1024 is taken") {
		t.Errorf("it is said %q", said)
	}

	got, said, err = In(record.Header{Options: []byte(`{"timeline":{"Spans":100}}`)})
	if err != nil || len(said) > 0 || got.Timeline.Images != 100 || got.Timeline.Facts != 50 {
		t.Errorf("of a recording with one bound for images and facts: %v, %q, %+v", err, said, got.Timeline)
	}
}

// setups are the events of pods' setups, one after another, that take as long as is drawn.
func setups(from, pods int, build string, took func() time.Duration) (events []event.Event) {
	const pause = 10 * time.Second
	for i := from; i < from+pods; i++ {
		begins := int64(i) * int64(pause)
		id, process := fmt.Sprint("sandbox-", i), event.Process(fmt.Sprint(i, "@1"))
		call := &event.Call{Command: "ADD", ContainerID: id, IfName: "eth0", NetNS: "/run/netns/" + id, Pod: event.Pod{Namespace: "shop", Name: fmt.Sprint("web-", i)}}
		ends := begins + int64(took())
		events = append(events,
			event.Event{Time: begins, Body: &event.Clock{Wall: 1_700_000_000e9 + begins}},
			event.Event{Time: begins, Body: &event.Exec{
				Process: process, Parent: "7@7", PID: 9, ParentPID: 7, Started: begins, Root: true, Caller: event.CallerRuntime,
				File: "/opt/cni/bin/cilium-cni", Name: "cilium-cni", InPath: true, Build: build, Call: call,
			}},
			event.Event{Time: ends, Body: &event.Exit{Process: process}},
			event.Event{Time: ends + 1, Body: &event.Sandbox{Phase: event.SandboxRunning, ID: id}},
			event.Event{Time: ends + 2, Body: &event.Tick{}},
			event.Event{Time: ends + 3, Body: &event.Sandbox{Phase: event.SandboxRemoved, ID: id}},
			event.Event{Time: begins + int64(pause) - 1, Body: &event.Tick{}},
		)
	}
	return events
}

// concluded is what a pipeline made of events, written down to be compared.
type concluded struct {
	bytes.Buffer
	operations, unusual, slow int
	verdicts                  []string
	findings                  []baseline.Finding
}

func (a *concluded) take(t *testing.T, results []pipeline.Result) {
	t.Helper()
	for _, r := range results {
		r, is := r.(*pipeline.Judged)
		if !is {
			continue
		}
		a.operations++
		a.findings = append(a.findings, r.Judgement.Findings...)
		if r.Judgement.Problem() != "" {
			a.slow++
		}
		for _, c := range r.Judgement.Calls {
			if c.Unusual {
				a.unusual++
				a.verdicts = append(a.verdicts, c.Verdict.Says)
			}
		}
		fmt.Fprintf(a, "%v %v %v\n", r.Operation.Key(), r.Judgement.Reasons, r.Judgement.Findings)
		data := harness.Must(proto.MarshalOptions{Deterministic: true}.Marshal(r.Spans))(t)
		a.Write(data)
	}
}

// A node judges while it is recorded; the recording, which begins with what was known, says the same byte for byte. Of
// 2,000 ordinary pods none is slower than usual, and once the plugin takes three times as long that is found
// within 20.
func TestRecordingCarriesItsBaseline(t *testing.T) {
	for name, ordinary := range map[string]func(r *rand.Rand) float64{
		"log-normal": func(r *rand.Rand) float64 { return 150 * math.Exp(0.3*r.NormFloat64()) },
		"two modes": func(r *rand.Rand) float64 {
			if r.IntN(3) == 0 {
				return 160 * math.Exp(0.15*r.NormFloat64())
			}
			return 90 * math.Exp(0.15*r.NormFloat64())
		},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) { replaysAlike(t, seed, ordinary) })
		}
	}
}

func replaysAlike(t *testing.T, seed uint64, ordinary func(r *rand.Rand) float64) {
	random := rand.New(rand.NewPCG(seed, 1))
	took := func() time.Duration { return time.Duration(ordinary(random) * float64(time.Millisecond)) }
	threefold := func() time.Duration { return min(3*took(), 1999*time.Millisecond) }
	o := config.Default()
	o.Sampling.Ratio, o.Sampling.Keep = 0, append(o.Sampling.Keep, "unusual")

	node := Of(o, "boot", "test").Pipeline("boot")
	for _, e := range setups(0, 2000, "1", took) {
		node.Apply(e)
	}
	s := Of(o, "boot", "test") // from here on it is recorded
	s.Baseline = node.Usual.Document()
	header := harness.Must(s.Header())(t)
	header.BootID = "boot"
	var recording bytes.Buffer
	out := harness.Must(record.NewWriter(&recording, header))(t)
	var live concluded
	apply := func(events []event.Event) {
		for _, e := range events {
			harness.Check(t, out.Write(e))
			live.take(t, node.Apply(e))
		}
	}
	apply(setups(2000, 2000, "1", took))
	if live.operations != 2000 || live.unusual > 0 || live.slow > 0 || len(live.findings) > 0 {
		t.Errorf("of %d ordinary pods %d were slower than usual, %d slow: %v", live.operations, live.unusual, live.slow, live.findings)
	}
	apply(setups(4000, 20, "1", threefold))
	if live.unusual == 0 || live.slow > 0 || len(live.findings) != 1 || live.findings[0].Kind != baseline.Slower {
		t.Errorf("of 20 pods that took three times as long %d were slower than usual, %d slow: %v", live.unusual, live.slow, live.findings)
	}
	for _, says := range live.verdicts {
		harness.Says(t, says, "; cilium-cni ADD took ", "× its p99 of ")
	}
	apply(setups(4020, 60, "2", threefold)) // and is another one then
	if kinds := len(live.findings); kinds != 3 || live.findings[1].Kind != baseline.Ended || live.findings[2].Kind != baseline.Changed || !strings.Contains(live.findings[2].String(), "(cilium-cni changed) ADD takes ") {
		t.Errorf("found %v", live.findings)
	}
	harness.Check(t, out.Close())
	if again := replayedFrom(t, &recording); !bytes.Equal(again.Bytes(), live.Bytes()) {
		t.Errorf("replayed there are %d operations and %v, live %d and %v", again.operations, again.findings, live.operations, live.findings)
	}
}

// replayedFrom is what a recording says.
func replayedFrom(t *testing.T, recording io.Reader) (again concluded) {
	t.Helper()
	in := harness.Must(record.NewReader(recording))(t)
	s, said, err := In(in.Header())
	if err != nil || len(said) > 0 {
		t.Fatal(said, err)
	}
	s.Node = Of(config.Default(), "boot", "test").Node // of this machine, on both sides
	p := s.Pipeline("boot")
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return again
		}
		harness.Check(t, err)
		again.take(t, p.Apply(e))
	}
}

// The baseline in a stranger's recording is not trusted: it is ignored with a note.
func TestBaselineOfAHostileRecording(t *testing.T) {
	for _, options := range []string{`{"baseline":{}}`, `{"baseline":[1]}`, `{"baseline":{"cniscope":"baseline","version":1,"entries":[{"plugin":"x","command":"ADD","learnt":{"first":5,"calls":[1e9]}}]}}`} {
		s, said, err := In(record.Header{Options: json.RawMessage(options)})
		if err != nil || s.Baseline != nil || !slices.ContainsFunc(said, func(s string) bool { return strings.Contains(s, "learning starts again") }) {
			t.Errorf("%s: %v, %v, %v", options, s.Baseline, said, err)
		}
	}
}
