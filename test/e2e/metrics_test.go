//go:build linux

package e2e

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func policy(pipe string) rig.Options {
	return rig.Options{
		Networks: []rig.Network{{CNIVersion: "1.1.0", Plugins: []rig.Plugin{rig.Bridge(), rig.Test("policy")}}},
		Plugins: map[string][]byte{"policy": rig.Script(`
case "$CNI_COMMAND $CNI_ARGS" in
"ADD "*K8S_POD_NAME=slow-*) sleep 0.4 ;;
"ADD "*K8S_POD_NAME=broken-*) fail 11 "no" ;;
"ADD "*K8S_POD_NAME=held-*) read -r _ <` + pipe + ` ;;
esac`)},
	}
}

// Metrics equal the traces for every call, plugin and command; STATUS and dropped operations are only counted.
func TestMetricsSayWhatTheTracesSay(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	harness.Check(t, syscall.Mkfifo(pipe, 0o600))
	whole := "[sampling]\nper_second = 0\n" // no summaries, so that Jaeger has everything
	s := set(t, false, policy(pipe), scope.Options{TOML: "[metrics]\nlisten = \"127.0.0.1:0\"\n" + whole})

	for _, path := range []string{"/healthz", "/readyz"} {
		if status, body := s.scope.Ask(s, path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, name := range []string{"web-0", "web-1", "slow-0"} {
		s.pod(rig.PodOptions{Namespace: "shop", Name: name})
	}
	harness.Check(t, s.rig.RemovePod(s.ctx, s.pod(rig.PodOptions{Namespace: "shop", Name: "web-2"})))
	if _, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "broken-0"}); err == nil {
		t.Fatal("the pod whose plugin fails was run")
	}
	// containerd may still run STATUS from its start.
	const statuses = 3
	for range statuses {
		_, err := s.rig.Status(s.ctx)
		harness.Check(t, err)
	}

	var counted map[string]float64
	harness.Eventually(s, func() error {
		all, err := s.jaeger.FindTraces(s.ctx, rig.Query{Service: "cniscope"})
		if err != nil {
			return err
		}
		counted = s.scope.Scrape(s)
		if n := counted[`cniscope_cni_call_seconds_count{cni_command="STATUS",plugin="bridge",result="success"}`]; n < statuses {
			return fmt.Errorf("%v of %d STATUS calls counted", n, statuses)
		}
		spans := flatten(all)
		if calls := only(spans, "call", "CNI ADD"); len(calls) != 10 {
			return fmt.Errorf("%d of 10 CNI ADD calls arrived", len(calls))
		}
		return same(times(counted), traced(spans))
	})
	for series, want := range map[string]float64{
		`cniscope_cni_call_seconds_count{cni_command="ADD",plugin="bridge",result="success"}`:          4,
		`cniscope_cni_call_seconds_count{cni_command="ADD",plugin="bridge",result="failed"}`:           1,
		`cniscope_cni_plugin_seconds_count{cni_command="ADD",plugin="policy",result="failed"}`:         1,
		`cniscope_cni_plugin_seconds_count{cni_command="STATUS",plugin="host-local",result="success"}`: counted[`cniscope_cni_call_seconds_count{cni_command="STATUS",plugin="bridge",result="success"}`],
		`cniscope_cni_calls_total{cni_command="ADD",outcome="failed"}`:                                 1,
		`cniscope_cni_calls_total{cni_command="ADD",outcome="slow_command"}`:                           1,
		`cniscope_slow_commands_total{command="sleep"}`:                                                1,
		`cniscope_operations_total{decision="dropped",reason="unsampled"}`:                             0,
		`cniscope_export_operations_dropped_total{destination="otlp",reason="queue_full"}`:             0,
		`cniscope_events_lost_total{reason="ring_full",source="probe"}`:                                0,
		`cniscope_feature_up{feature="nri"}`:                                                           1,
		`cniscope_feature_up{feature="runtime_version"}`:                                               1,
		`cniscope_probe_attached`:                         1,
		`cniscope_cni_calls_in_flight{cni_command="ADD"}`: 0,
	} {
		harness.Equal(t, counted[series], want, series)
	}
	s.heldPodIsInFlight(pipe)

	harness.Check(t, s.scope.SetOptions("[metrics]\nlisten = \"127.0.0.1:0\"\n[sampling]\nratio = 0.0\nkeep = []\n"))
	harness.Check(t, s.scope.WaitLog(s.ctx, "options changed", 1))
	before := s.scope.Scrape(s)
	s.pod(rig.PodOptions{Namespace: "shop", Name: "slow-1"})
	harness.Eventually(s, func() error {
		now := s.scope.Scrape(s)
		for series, more := range map[string]float64{
			`cniscope_operations_total{decision="dropped",reason="unsampled"}`:                    1,
			`cniscope_cni_call_seconds_count{cni_command="ADD",plugin="bridge",result="success"}`: 1,
			`cniscope_slow_commands_total{command="sleep"}`:                                       1,
		} {
			if got := now[series] - before[series]; got != more {
				return fmt.Errorf("with nothing kept, %s grew by %v, want %v", series, got, more)
			}
		}
		return nil
	})
}

func (s *stage) heldPodIsInFlight(pipe string) {
	s.Helper()
	done := s.rig.BeginPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "held-0"})
	var age float64
	harness.Eventually(s, func() error {
		now := s.scope.Scrape(s)
		if n := now[`cniscope_cni_calls_in_flight{cni_command="ADD"}`]; n != 1 {
			return fmt.Errorf("%v calls in flight, want 1", n)
		}
		was := age
		if age = now[`cniscope_cni_oldest_call_seconds{cni_command="ADD"}`]; was == 0 || age <= was {
			return fmt.Errorf("the oldest is %v s old, was %v", age, was)
		}
		return nil
	})
	harness.Check(s.T, os.WriteFile(pipe, []byte("go on\n"), 0))
	harness.Check(s.T, <-done)
	harness.Eventually(s, func() error {
		if n := s.scope.Scrape(s)[`cniscope_cni_calls_in_flight{cni_command="ADD"}`]; n != 0 {
			return fmt.Errorf("%v calls in flight after the last", n)
		}
		return nil
	})
}

func times(counted map[string]float64) map[string]float64 {
	found := map[string]float64{}
	for series, v := range counted {
		if regexp.MustCompile(`^cniscope_(cni_call|cni_plugin|command)_seconds_(count|sum)\{`).MatchString(series) && !strings.Contains(series, "STATUS") {
			found[series] = v
		}
	}
	return found
}

func traced(all []*span) map[string]float64 {
	want := map[string]float64{}
	add := func(x *span, metric, labels string) {
		want[metric+"_count{"+labels+"}"]++
		want[metric+"_sum{"+labels+"}"] += x.took().Seconds()
	}
	result := func(x *span) string {
		if x.failed() {
			return "failed"
		}
		return "success"
	}
	for _, x := range only(all, "command", "") {
		add(x, "cniscope_command_seconds", fmt.Sprintf("command=%q", x.Name))
	}
	for _, x := range only(all, "plugin", "") {
		add(x, "cniscope_cni_plugin_seconds", fmt.Sprintf("cni_command=%q,plugin=%q,result=%q", x.text("cni.command"), x.text("cni.plugin"), result(x)))
	}
	for _, x := range only(all, "call", "") {
		chain := slices.DeleteFunc(only(all, "plugin", ""), func(p *span) bool { return p.parent() != x.id() })
		slices.SortFunc(chain, func(a, b *span) int { return int(int64(a.StartTimeUnixNano - b.StartTimeUnixNano)) })
		command, first := strings.TrimPrefix(x.Name, "CNI "), chain[0]
		if command == "DEL" { // in reverse order
			first = chain[len(chain)-1]
		}
		add(x, "cniscope_cni_call_seconds", fmt.Sprintf("cni_command=%q,plugin=%q,result=%q", command, first.text("cni.plugin"), result(x)))
	}
	return want
}

func same(got, want map[string]float64) error {
	for _, sides := range [][2]map[string]float64{{got, want}, {want, got}} {
		for series := range sides[0] {
			if math.Abs(got[series]-want[series]) > 1e-6 {
				return fmt.Errorf("%s: counted %v, traced %v", series, got[series], want[series])
			}
		}
	}
	return nil
}
