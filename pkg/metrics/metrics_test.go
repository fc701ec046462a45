package metrics

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/cniscope/cniscope/pkg/baseline"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/test/harness"
)

var update = flag.Bool("update", false, "write the expected output anew")

func TestGolden(t *testing.T) {
	const golden = "testdata/three-pods.txt"
	m := newTest(busy)
	replay(t, m, thresholds)
	m.Event(lost("probe", "ring full", 12))
	m.Event(degraded("nri", false))
	got := ours(scrape(t, m.Handler()))
	if *update {
		harness.Check(t, os.WriteFile(golden, []byte(got), 0o644))
	}
	want := harness.Must(os.ReadFile(golden))(t)
	if got != string(want) {
		for i, line := range strings.Split(got, "\n") {
			if lines := strings.Split(string(want), "\n"); i >= len(lines) || lines[i] != line {
				t.Fatalf("line %d: got\n%s\nif that is meant: go test ./pkg/metrics -run Golden -update", i+1, line)
			}
		}
		t.Fatal("it ends early")
	}
}

// ours returns cniscope's own metrics, without exemplar times and Go versions.
func ours(exposition string) string {
	exposition = regexp.MustCompile(`(?m)^(?:# \w+ )?(?:go|process)_.*\n`).ReplaceAllString(exposition, "")
	exposition = regexp.MustCompile(`(?m)( # \{[^}]*\} \S+) \S+$`).ReplaceAllString(exposition, "$1")
	return regexp.MustCompile(`goversion="[^"]*"`).ReplaceAllString(regexp.MustCompile(`arch="[^"]*",`).ReplaceAllString(exposition, ""), `goversion="go"`)
}

// Prometheus' linter checks the conventions.
func TestLint(t *testing.T) {
	m := newTest(busy)
	replay(t, m, thresholds)
	problems := harness.Must(testutil.GatherAndLint(m.registry))(t)
	for _, p := range problems {
		t.Error(p.Metric, p.Text)
	}
}

// Sampling does not affect the counts.
func TestCountedBeforeSampling(t *testing.T) {
	counts := func(o judge.Options) string {
		m := newTest(nil)
		replay(t, m, o)
		return regexp.MustCompile(`(?m)^.*cniscope_operations_total.*\n| # \{.*$`).
			ReplaceAllString(ours(scrape(t, m.Handler())), "")
	}
	nothing := thresholds
	nothing.Ratio, nothing.Keep = 0, nil
	harness.Equal(t, counts(thresholds), counts(nothing), "with everything kept, and with nothing")
}

func TestFirstConnectionsAreTimedIfTheyCame(t *testing.T) {
	m := newTest(nil)
	for _, never := range []bool{false, true} {
		m.Result(&pipeline.Connected{Connected: model.Connected{End: 1e9, At: 4e9, Never: never}})
	}
	harness.Says(t, ours(scrape(t, m.Handler())), "cniscope_first_connection_seconds_sum 3.0\ncniscope_first_connection_seconds_count 1\n")
}

// Decisions sum up to all operations, and exemplars name exported traces.
func TestDecisionsAndExemplars(t *testing.T) {
	m := newTest(nil)
	o := thresholds
	o.Ratio = 0
	results := replay(t, m, o)
	want, sent := map[string]int{}, map[string]bool{}
	for _, r := range results {
		want[fmt.Sprintf(`cniscope_operations_total{decision="%s",reason="%s"}`, decision(r.Judgement),
			word(reason(r.Judgement)))]++
		for _, id := range r.IDs {
			sent[id.String()] = true
		}
	}
	text := scrape(t, m.Handler())
	got := map[string]int{}
	for _, line := range strings.Split(text, "\n") {
		if name, value, _ := strings.Cut(line, " "); strings.HasPrefix(name, "cniscope_operations_total{") {
			n := harness.Must(strconv.ParseFloat(strings.Fields(value)[0], 64))(t)
			got[name] = int(n)
		}
	}
	if !maps.Equal(got, want) || len(want) < 3 {
		t.Errorf("got %v, want %v", got, want)
	}
	ids := regexp.MustCompile(`# \{trace_id="([0-9a-f]+)"\}`).FindAllStringSubmatch(text, -1)
	for _, id := range ids {
		if !sent[id[1]] {
			t.Errorf("the exemplar %s was never sent", id[1])
		}
	}
	if len(ids) == 0 {
		t.Error("no exemplars")
	}
}

// A thousand pods have the series of the first, none of which names a pod.
func TestLowCardinality(t *testing.T) {
	m := newTest(busy)
	var first []string
	for i := range 1000 {
		m.Result(pod(i))
		if i == 1 {
			first = series(scrape(t, m.Handler()))
		}
	}
	last := scrape(t, m.Handler())
	if got := series(last); !slices.Equal(got, first) {
		t.Errorf("%d series after two pods, %d after 1000", len(first), len(got))
	}
	harness.Equal(t, regexp.MustCompile(`(ns|pod|uid|sandbox|net)-\d+|eth\d`).FindString(last), "", "is in a label")
}

// Names are bounded to 200 and "other".
func TestNamesAreFew(t *testing.T) {
	m := newTest(nil)
	for i := range 1000 {
		r := pod(1)
		bridge := r.Operation.Calls[0].Runs[0]
		bridge.Run.Plugin = fmt.Sprint("plugin-", i)
		bridge.Children[1].Name = fmt.Sprint("tool-", i)
		m.Result(r)
	}
	text := scrape(t, m.Handler())
	for pattern, want := range map[string]int{
		`cniscope_cni_plugin_seconds_count\{`:               201,
		`cniscope_command_seconds_count\{`:                  201,
		`cniscope_command_seconds_count\{command="other"\}`: 1,
	} {
		harness.Equal(t, len(regexp.MustCompile(pattern).FindAllString(text, -1)), want, "series of", pattern)
	}
}

func TestWhatSourcesSayOfThemselves(t *testing.T) {
	m := newTest(nil)
	m.Event(degraded("nri", false))
	m.Event(degraded("nri", true))
	m.Event(degraded("CNI configuration", false))
	m.Event(lost("probe", "ring full", 5))
	m.Event(lost("probe", "ring full", 2))
	text := scrape(t, m.Handler())
	for _, want := range []string{
		`cniscope_feature_up{feature="nri"} 1.0`,
		`cniscope_feature_up{feature="CNI_configuration"} 0.0`,
		`cniscope_feature_up{feature="runtime_version"} 1.0`,
		`cniscope_events_lost_total{reason="ring_full",source="probe"} 7.0`,
		`cniscope_events_lost_total{reason="queue_full",source="nri"} 0.0`,
		`cniscope_cni_calls_total{cni_command="ADD",outcome="failed"} 0.0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("missing %s", want)
		}
	}
}

func series(exposition string) (names []string) {
	for _, line := range strings.Split(exposition, "\n") {
		if name, _, _ := strings.Cut(line, " "); name != "" && name != "#" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// unusual is a pod whose plugin exceeded its baseline without being slow, and which ends a comparison.
func unusual() *pipeline.Judged {
	r := pod(0)
	bridge := r.Operation.Calls[0].Runs[0]
	r.Judgement.Usual = map[*model.Image]baseline.Answer{bridge: {
		Above: true, Slower: true,
		Usual: baseline.Level{P99: 1, Calls: 300},
	}}
	c := r.Judgement.Calls[r.Operation.Calls[0]]
	c.Unusual, c.Verdict = true, &judge.Verdict{Cause: judge.CausePlugin}
	r.Judgement.Findings = []baseline.Finding{{
		Kind: baseline.Changed, Key: baseline.Key{Plugin: "bridge", Command: "ADD"},
		Was: baseline.Level{Median: 100}, Is: baseline.Level{Median: 230},
	}}
	return r
}

// It has its own metric and affects no alert.
func TestSlowerThanUsualIsOrdinary(t *testing.T) {
	m := newTest(nil)
	m.Result(unusual())
	m.Result(pod(0))
	text := scrape(t, m.Handler())
	for _, line := range []string{
		`cniscope_cni_unusual_calls_total{cni_command="ADD",plugin="bridge"} 1.0`,
		`cniscope_cni_change_ratio{cni_command="ADD",plugin="bridge"} 2.3`,
		`cniscope_cni_calls_total{cni_command="ADD",outcome="ordinary"} 2.0`,
		`cniscope_cni_verdicts_total{cause="plugin",cni_command="ADD"} 0.0`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
}
