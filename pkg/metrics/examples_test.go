package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/history"
	"github.com/cniscope/cniscope/pkg/leak"
	"github.com/cniscope/cniscope/pkg/meter"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/pkg/pipeline"
	"github.com/cniscope/cniscope/pkg/probe"
	"github.com/cniscope/cniscope/pkg/probe/connector"
	"github.com/cniscope/cniscope/pkg/windows/etw"
	"github.com/cniscope/cniscope/test/harness"
)

// Examples may name only existing metrics, labels and values.
const (
	dashboard = "../../examples/grafana/cniscope.json"
	alerts    = "../../examples/prometheus/alerts.yaml"
	manual    = "../../docs/metrics.md"
)

type labels map[string][]string

// families returns all metrics after one event of each kind.
func families(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	m := newTest(func() Snapshot {
		s := busy()
		s.Readings = append(s.Readings,
			meter.Level("probe_source",
				"How processes are observed: bpf, bpf-commands (the kernel hides its memory from BPF programs), connector (the "+
					"kernel refuses them).", 1, "source", probe.SourceConnector))
		var leaks leak.Book
		leaks.Look(leak.Look{}, leak.After)
		s.Readings = append(s.Readings, leaks.Readings()...)
		s.Readings = append(s.Readings, history.New("", time.Unix(0, 0)).Readings()...)
		s.Readings = append(s.Readings, etw.Stats{Unknown: map[string]uint64{"Kernel-Process start v9": 1}}.Readings()...)
		for _, reading := range (connector.Stats{}).Readings() {
			if strings.HasPrefix(reading.Name, "connector_") { // the probe has the others too
				s.Readings = append(s.Readings, reading)
			}
		}
		return s
	})
	replay(t, m, thresholds)
	m.Result(&pipeline.Hung{Flight: model.Flight{Command: "ADD"}})
	status := pod(0)
	status.Operation.Calls[0].Command = "STATUS"
	m.Result(status)
	m.Result(unusual())
	m.Event(event.Event{Body: &event.Degraded{Feature: "dropping privileges"}})
	m.Event(event.Event{Time: 1, Body: &event.Readiness{Lacks: event.LackConfiguration}})
	m.Event(event.Event{Time: 2, Body: &event.Readiness{Ready: true}})
	return harness.Must(m.registry.Gather())(t)
}

// everything returns the labels of all metrics.
func everything(t *testing.T) map[string]labels {
	t.Helper()
	all := map[string]labels{}
	for _, family := range families(t) {
		seen := labels{}
		for _, metric := range family.Metric {
			for _, label := range metric.Label {
				seen[label.GetName()] = append(seen[label.GetName()], label.GetValue())
			}
		}
		all[family.GetName()] = seen
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(harness.Must(os.ReadFile(file))(t))
}

var (
	name       = regexp.MustCompile(`\bcniscope_[a-z_]+\b`)
	part       = regexp.MustCompile(`_(bucket|sum|count)$`)
	selector   = regexp.MustCompile(`\b(cniscope_[a-z_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"`)
	grouping   = regexp.MustCompile(`by \(([^)]*)\)`)
	recorded   = regexp.MustCompile(`\w+:cniscope_[a-z_]+:\w+`)
	fromScrape = []string{"cluster", "instance", "job", "le"} // added by Prometheus
)

func TestExamplesNameWhatThereIs(t *testing.T) {
	all := everything(t)
	known := map[string]bool{}
	for _, of := range all {
		for label := range of {
			known[label] = true
		}
	}
	for _, label := range fromScrape {
		known[label] = true
	}
	for _, file := range []string{dashboard, alerts, manual} {
		text := recorded.ReplaceAllString(strings.ReplaceAll(read(t, file), `\"`, `"`), "")
		for _, found := range name.FindAllString(text, -1) {
			if all[found] == nil && all[part.ReplaceAllString(found, "")] == nil {
				t.Errorf("%s: there is no metric %s", file, found)
			}
		}
		for _, of := range selector.FindAllStringSubmatch(text, -1) {
			for _, match := range matcher.FindAllStringSubmatch(of[2], -1) {
				checkMatcher(t, file, of[1], all[part.ReplaceAllString(of[1], "")], match[1], match[3])
			}
		}
		for _, by := range grouping.FindAllStringSubmatch(text, -1) {
			for _, label := range strings.Split(by[1], ",") {
				if !known[strings.TrimSpace(label)] {
					t.Errorf("%s: no metric has the label %s", file, label)
				}
			}
		}
	}
}

func checkMatcher(t *testing.T, file, metric string, has labels, label, values string) {
	t.Helper()
	if slices.Contains(fromScrape, label) {
		return
	}
	if has[label] == nil {
		t.Errorf("%s: %s has no label %s", file, metric, label)
		return
	}
	for _, value := range strings.Split(values, "|") {
		if !slices.Contains(has[label], value) {
			t.Errorf("%s: %s of %s is never %s", file, label, metric, value)
		}
	}
}

// docs/metrics.md has every metric with its labels and HELP; make golden writes them.
func TestGoldenManual(t *testing.T) {
	var table strings.Builder
	table.WriteString("| metric | labels | meaning |\n|---|---|---|\n")
	for _, family := range families(t) {
		if !strings.HasPrefix(family.GetName(), "cniscope_") {
			continue
		}
		var names []string
		for _, label := range family.Metric[0].Label {
			names = append(names, "`"+label.GetName()+"`")
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", family.GetName(), strings.Join(names, ", "), family.GetHelp())
	}
	text := read(t, manual)
	before, rest, _ := strings.Cut(text, "<!-- generated: metrics -->\n")
	_, after, found := strings.Cut(rest, "<!-- end -->")
	switch now := before + "<!-- generated: metrics -->\n" + table.String() + "<!-- end -->" + after; {
	case !found:
		t.Fatalf("%s has no table that is generated", manual)
	case now == text:
	case !*update:
		t.Errorf("%s is not what the program gives: make golden", manual)
	default:
		harness.Check(t, os.WriteFile(manual, []byte(now), 0o644))
	}
}

func TestTheDashboardIsOne(t *testing.T) {
	var d struct {
		Panels []struct {
			ID      int
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	harness.Check(t, json.Unmarshal([]byte(read(t, dashboard)), &d))
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d", p.ID)
		}
		ids[p.ID] = true
	}
	if len(ids) == 0 {
		t.Error("no panels")
	}
}
