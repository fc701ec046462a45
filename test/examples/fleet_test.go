//go:build linux

package examples

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

// fleet is a cluster of time series, with a scrape of each node per minute, the same in every run.
type fleet struct {
	cluster string
	nodes   int
	minutes int
	// pods returns one cause for each pod that a node starts in a minute. "" is an ordinary pod.
	pods      func(node, minute int, r *rand.Rand) []string
	teardowns func(node, minute int, r *rand.Rand) []string
	// gauges returns other series of a node, by name and labels, in promtool's notation.
	gauges    func(node int) map[string]string
	restarted func(node, minute int) bool
	absent    func(node, minute int) bool
}

var causes = []string{"file_lock", "kernel_lock", "many_commands", "agent", "plugin_error"}

func instance(node int) string { return fmt.Sprintf("node-%03d", node) }

// usual returns the pods of a minute on a node with 200 pods a day.
func usual(r *rand.Rand) []string {
	if r.Float64() < 200./(24*60) {
		return []string{""}
	}
	return nil
}

// noisy adds ordinary faults to usual: single slow ADDs, a node with many, a node failing at once.
func noisy(node, minute int, r *rand.Rand) []string {
	pods := usual(r)
	for i := range pods {
		if r.IntN(2000) == 0 || node%100 == 7 && r.IntN(10) == 0 {
			pods[i] = causes[r.IntN(len(causes))]
		}
	}
	if node == 3 && minute == 40 {
		pods = append(pods, slices.Repeat([]string{"plugin_error"}, 6)...)
	}
	return pods
}

func atOnce(node, minute int, extra ...string) func(int, int, *rand.Rand) []string {
	return func(n, m int, r *rand.Rand) []string {
		pods := noisy(n, m, r)
		if n == node && m == minute {
			pods = append(pods, extra...)
		}
		return pods
	}
}

// counts holds cumulative counts by series, one for each minute. -1 is no sample.
type counts struct {
	minutes int
	series  map[string][]int
}

func (c *counts) at(name string, minute int) *int {
	if c.series[name] == nil {
		c.series[name] = make([]int, c.minutes)
	}
	return &c.series[name][minute]
}

func (c *counts) add(name string, minute, end int) {
	for m := minute; m < end; m++ {
		*c.at(name, m)++
	}
}

func (f fleet) node(node int, r *rand.Rand) *counts {
	c := &counts{minutes: f.minutes, series: map[string][]int{}}
	commands := []string{"ADD", "DEL"}
	if f.teardowns == nil {
		commands = commands[:1]
	}
	for _, command := range commands {
		for _, outcome := range []string{"ordinary", "slow", "failed"} {
			c.at(calls(command, outcome), 0)
		}
		for _, cause := range causes {
			c.at(verdicts(command, cause), 0)
		}
	}
	for minute := range f.minutes {
		end := minute + 1
		for end < f.minutes && (f.restarted == nil || !f.restarted(node, end)) {
			end++
		}
		for _, cause := range f.pods(node, minute, r) {
			count(c, "ADD", cause, minute, end)
		}
		if f.teardowns != nil {
			for _, cause := range f.teardowns(node, minute, r) {
				count(c, "DEL", cause, minute, end)
			}
		}
		if f.absent != nil && f.absent(node, minute) {
			for _, values := range c.series {
				values[minute] = -1 << 30
			}
		}
	}
	return c
}

func count(c *counts, command, cause string, minute, end int) {
	outcome := "slow"
	switch cause {
	case "":
		outcome = "ordinary"
	case "plugin_error":
		outcome = "failed"
	}
	c.add(calls(command, outcome), minute, end)
	if cause != "" {
		c.add(verdicts(command, cause), minute, end)
	}
}

func calls(command, outcome string) string {
	return fmt.Sprintf("cniscope_cni_calls_total{cni_command=%q,outcome=%q", command, outcome)
}

func verdicts(command, cause string) string {
	return fmt.Sprintf("cniscope_cni_verdicts_total{cni_command=%q,cause=%q", command, cause)
}

func (f fleet) write(to io.Writer) {
	r := rand.New(rand.NewPCG(14, uint64(len(f.cluster))))
	of := ""
	if f.cluster != "" {
		of = fmt.Sprintf(",cluster=%q", f.cluster)
	}
	for node := range f.nodes {
		on := fmt.Sprintf(",instance=%q%s}", instance(node), of)
		for name, values := range f.node(node, r).series {
			if node > 0 && slices.Max(values) == 0 && !strings.Contains(name, "ordinary") {
				continue // a constant adds nothing to a sum, but takes as long to evaluate
			}
			fmt.Fprintf(to, "      - {series: '%s%s', values: '%s'}\n", name, on, notation(values))
		}
		fmt.Fprintf(to, "      - {series: 'up{job=\"cniscope\"%s', values: '1x%d'}\n", on, f.minutes-1)
		if f.gauges == nil {
			continue
		}
		for name, values := range f.gauges(node) {
			fmt.Fprintf(to, "      - {series: '%s%s', values: '%s'}\n", name, on, values)
		}
	}
}

func notation(values []int) string {
	var b strings.Builder
	for i := 0; i < len(values); {
		n := 1
		for i+n < len(values) && values[i+n] == values[i] {
			n++
		}
		switch {
		case values[i] < 0:
			fmt.Fprintf(&b, "_x%d ", n)
		case n == 1:
			fmt.Fprintf(&b, "%d ", values[i])
		default:
			fmt.Fprintf(&b, "%dx%d ", values[i], n-1)
		}
		i += n
	}
	return strings.TrimSpace(b.String())
}

func fires(t *testing.T, fleets []fleet, want ...string) {
	t.Helper()
	var b strings.Builder
	rules := harness.Must(filepath.Abs(alerts))(t)
	fmt.Fprintf(&b, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n", rules)
	for _, f := range fleets {
		f.write(&b)
	}
	end := fleets[0].minutes - 1
	fmt.Fprintf(&b, "    promql_expr_test:\n      - expr: count by (alertname, cluster, cause, feature, destination) (max_over_time(ALERTS{alertstate=\"firing\"}[%dm]))\n        eval_time: %dm\n        exp_samples:\n", end, end)
	for _, labels := range want {
		fmt.Fprintf(&b, "          - {labels: '{%s}', value: 1}\n", labels)
	}
	fmt.Fprintf(&b, "      - expr: max_over_time((count(ALERTS{alertstate=\"firing\"}) or vector(0))[%dm:1m])\n        eval_time: %dm\n        exp_samples: [{labels: '{}', value: %d}]\n", end, end, min(1, len(want)))
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	harness.Check(t, os.WriteFile(file, []byte(b.String()), 0o600))
	promtool(t, "test", "rules", file)
}

// long skips a simulation of half a minute, unless make test-alerts runs it.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("CNISCOPE_ALERTS") == "" {
		t.Skip("make test-alerts runs it")
	}
}

// In two hours of a fleet, there is always some small fault on some node.
func TestOrdinaryNoiseAlertsNobody(t *testing.T) {
	long(t)
	fires(t, []fleet{{nodes: 500, minutes: 120, pods: noisy, gauges: func(node int) map[string]string {
		minute := node % 50
		return map[string]string{
			`cniscope_cni_oldest_call_seconds{cni_command="ADD"`:                              fmt.Sprintf("0x%d 90 0x70", minute),
			`cniscope_probe_lag_seconds{source="x"`:                                           fmt.Sprintf("0x%d 0.6x2 0x70", minute),
			`cniscope_export_failing_seconds{destination="otlp"`:                              fmt.Sprintf("0x%d 60 120 0x70", minute),
			`cniscope_events_lost_total{source="probe",reason="ring_full"`:                    fmt.Sprintf("0x%d 3x70", minute),
			`cniscope_node_network_ready{job="cniscope"`:                                      "0x4 1x470",
			`cniscope_probe_attached{job="cniscope"`:                                          "0 1x470",
			`cniscope_export_operations_dropped_total{destination="otlp",reason="queue_full"`: "0x470",
			`cniscope_leaked_networks{job="cniscope"`:                                         fmt.Sprintf("0x%d 3x470", minute),
			`cniscope_leaked_leases{job="cniscope"`:                                           fmt.Sprintf("0x%d 40x50 0x470", minute),
			`cniscope_baselines{job="cniscope"`:                                               "9x470",
			`cniscope_baselines_slower{job="cniscope"`:                                        fmt.Sprintf("0x%d 1x9 0x470", minute),
		}
	}}})
}

// locked holds the iptables lock for an hour on every 25th node.
func locked(node, minute int, r *rand.Rand) []string {
	pods := noisy(node, minute, r)
	if node%25 == 0 && minute >= 40 && minute < 100 {
		for i := range pods {
			pods[i] = "file_lock"
		}
	}
	return pods
}

func TestALockOnTwentyNodesIsOneAlert(t *testing.T) {
	fires(t, []fleet{{nodes: 500, minutes: 150, pods: locked, teardowns: locked}},
		`alertname="PodNetworkDegraded",cause="file_lock"`)
}

func TestALockInOneOfTwoClustersIsOneAlert(t *testing.T) {
	long(t)
	fires(t, []fleet{{cluster: "east", nodes: 250, minutes: 150, pods: locked}, {cluster: "west", nodes: 250, minutes: 150, pods: noisy}},
		`alertname="PodNetworkDegraded",cause="file_lock",cluster="east"`)
}

// Pods start at once and wait for each other: on one node, on all nodes, and in a cluster of one node.
func TestABurstOfSlowPodsIsOneAlert(t *testing.T) {
	long(t)
	burst := slices.Concat(slices.Repeat([]string{"kernel_lock"}, 80), slices.Repeat([]string{"many_commands"}, 55))
	fires(t, []fleet{{nodes: 500, minutes: 150, pods: atOnce(11, 50, burst...)}}, `alertname="PodNetworkDegraded",cause="kernel_lock"`)
	fires(t, []fleet{{nodes: 1, minutes: 150, pods: atOnce(0, 50, burst...)}}, `alertname="PodNetworkDegraded",cause="kernel_lock"`)
	spread := func(node, minute int, r *rand.Rand) []string {
		pods := noisy(node, minute, r)
		if minute == 50 && node < len(burst) {
			pods = append(pods, causes[node%3])
		}
		return pods
	}
	fires(t, []fleet{{nodes: 500, minutes: 150, pods: spread}}, `alertname="PodNetworkDegraded",cause="several"`)
}

func TestAFewNodesAreOneAlert(t *testing.T) {
	long(t)
	fires(t, []fleet{{nodes: 500, minutes: 120, pods: func(node, minute int, r *rand.Rand) []string {
		switch {
		case node < 2 && minute >= 40:
			return []string{"plugin_error"} // a retry
		case r.IntN(10) < 7:
			return []string{""}
		}
		return nil
	}}}, `alertname="PodNetworkNodesDegraded"`)
}

// One pod in two hundred is slow, all day.
func TestASmallLeakBurnsTheBudget(t *testing.T) {
	long(t)
	fires(t, []fleet{{nodes: 500, minutes: 150, pods: func(_, _ int, r *rand.Rand) []string {
		pods := usual(r)
		for i := range pods {
			if r.IntN(200) == 0 {
				pods[i] = "agent"
			}
		}
		return pods
	}}}, `alertname="PodNetworkBudgetBurn",cause="agent"`)
}

func TestRestartsAlertNobody(t *testing.T) {
	long(t)
	fires(t, []fleet{{
		nodes: 500, minutes: 130, pods: noisy,
		restarted: func(node, minute int) bool { return minute == 40+node/10 },
		absent:    func(node, minute int) bool { return minute == 40+node/10 || minute == 41+node/10 },
	}})
}

func TestAFaultOfNodesIsOneAlert(t *testing.T) {
	const one, tenth = 1000, 10
	for name, test := range map[string]struct {
		of                   int // every how manyth node
		series, sound, fault string
		want                 string
	}{
		"not ready":  {one, `cniscope_node_network_ready{job="cniscope"`, "1x119", "1x30 0x88", `alertname="NodeNetworkNotReady"`},
		"hung":       {one, `cniscope_cni_oldest_call_seconds{cni_command="ADD"`, "0x119", "0x30 " + strings.Repeat("30 90 150 210 0 ", 17), `alertname="PodNetworkCallsHung"`},
		"lag":        {tenth, `cniscope_probe_lag_seconds{job="cniscope"`, "0x119", "0x30 0.4x88", `alertname="CniscopeOverloaded"`},
		"loss":       {tenth, `cniscope_events_lost_total{source="probe",reason="ring_full"`, "0x119", "0x30 0+5x88", `alertname="CniscopeOverloaded"`},
		"no backend": {1, `cniscope_export_failing_seconds{destination="otlp"`, "", "0x30 0+60x88", `alertname="CniscopeExportFailing",destination="otlp"`},
	} {
		t.Run(name, func(t *testing.T) {
			fires(t, []fleet{{nodes: 100, minutes: 90, pods: noisy, gauges: func(node int) map[string]string {
				if node%test.of == 0 {
					return map[string]string{test.series: test.fault}
				}
				return map[string]string{test.series: test.sound}
			}}}, test.want)
		})
	}
}

// All scrapes fail; then every tenth node's.
func TestMetricsThatAreAbsentAreOneAlert(t *testing.T) {
	fires(t, []fleet{{minutes: 60}}, `alertname="CniscopeDown"`)
	fires(t, []fleet{{
		nodes: 100, minutes: 90, pods: noisy,
		absent: func(node, minute int) bool { return node%2 == 0 && minute > 40 },
	}})
}
