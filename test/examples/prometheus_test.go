//go:build linux

// Package examples tests the files of examples/ with the real Jaeger, the OpenTelemetry Collector's components, and
// Prometheus' checks.
package examples

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

const (
	dashboard  = "../../examples/grafana/cniscope.json"
	alerts     = "../../examples/prometheus/alerts.yaml"
	alertsTest = "testdata/alerts_test.yaml"
)

// tool returns the path of a program, or skips the test if it is not built.
func tool(t *testing.T, name string) string {
	t.Helper()
	dir, err := rig.Tools(name)
	if errors.Is(err, rig.ErrNoTools) {
		t.Skipf("%s is not built: make tools-%s", name, name)
	}
	harness.Check(t, err)
	return filepath.Join(dir, name)
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), tool(t, "promtool"), args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// testdata holds cases that fire and cases that do not.
func TestAlerts(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", alerts)
	promtool(t, "test", "rules", alertsTest)
}

func TestTheDashboardsQueries(t *testing.T) {
	data := harness.Must(os.ReadFile(dashboard))(t)
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	harness.Check(t, json.Unmarshal(data, &d))
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$instance", ".*")
	var rules strings.Builder
	rules.WriteString("groups:\n- name: dashboard\n  rules:\n")
	n := 0
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			n++
			fmt.Fprintf(&rules, "  - record: query:%d # %s\n    expr: %q\n", n, p.Title, variables.Replace(target.Expr))
		}
	}
	if n == 0 {
		t.Fatal("no queries")
	}
	file := filepath.Join(t.TempDir(), "dashboard.yaml")
	harness.Check(t, os.WriteFile(file, []byte(rules.String()), 0o600))
	promtool(t, "check", "rules", file)
}
