package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

// everything returns all metrics after one event of each kind.
func everything(t *testing.T) map[string]labels {
	t.Helper()
	m := newTest(func() Snapshot {
		s := busy()
		s.Readings = append(s.Readings, meter.Level("probe_source", "By what means processes are observed.", 1, "source", probe.SourceConnector))
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
	families, err := m.registry.Gather()
	harness.Check(t, err)
	all := map[string]labels{}
	for _, family := range families {
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
	data, err := os.ReadFile(file)
	harness.Check(t, err)
	return string(data)
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

func TestEveryMetricIsExplained(t *testing.T) {
	text := read(t, manual)
	for metric, has := range everything(t) {
		if !strings.HasPrefix(metric, "cniscope_") {
			continue
		}
		row := regexp.MustCompile("(?m)^\\|.*`" + metric + "`.*$").FindString(text)
		if row == "" {
			t.Errorf("%s is not in %s", metric, manual)
		}
		for label := range has {
			if !strings.Contains(row, "`"+label+"`") {
				t.Errorf("the label %s of %s is not in %s", label, metric, manual)
			}
		}
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
