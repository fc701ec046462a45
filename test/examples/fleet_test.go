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

// fleet is a cluster that exists as time series only: what a Prometheus that scrapes each node once a
// minute would have. It is the same in every run.
type fleet struct {
	cluster string // of the label; empty: there is none
	nodes   int
	minutes int
	// pods returns the causes of the pods that a node starts in a minute, one for each; "" is an ordinary pod.
	pods func(node, minute int, r *rand.Rand) []string
	// teardowns is the same for pods that end, and failed says that one could not be torn down. May be nil.
	teardowns func(node, minute int, r *rand.Rand) []string
	// gauges are other series of a node: for each name and labels, the values as promtool notes them.
	gauges func(node int) map[string]string
	// restarted says whether a node's cniscope is new in that minute, and counts from 0. May be nil.
	restarted func(node, minute int) bool
	// absent says whether a node is not scraped in that minute. May be nil.
	absent func(node, minute int) bool
}

// causes are those that happen here; a real cniscope has a series for each that there is.
var causes = []string{"file_lock", "kernel_lock", "many_commands", "agent", "plugin_error"}

func instance(node int) string { return fmt.Sprintf("node-%03d", node) }

// usual is what a node with 200 pods a day starts in a minute.
func usual(r *rand.Rand) []string {
	if r.Float64() < 200./(24*60) {
		return []string{""}
	}
	return nil
}

// noisy is usual with what always happens on some node: one ADD in 2000 is slow, on every hundredth
// node one in ten, and one node fails six times at once.
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

// atOnce is noisy with some more pods on a node in a minute.
func atOnce(node, minute int, extra ...string) func(int, int, *rand.Rand) []string {
	return func(n, m int, r *rand.Rand) []string {
		pods := noisy(n, m, r)
		if n == node && m == minute {
			pods = append(pods, extra...)
		}
		return pods
	}
}

// counts counts as cniscope does: by series, a value for each minute. -1 is no sample.
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

// add counts one from a minute on.
func (c *counts) add(name string, minute, end int) {
	for m := minute; m < end; m++ {
		*c.at(name, m)++
	}
}

// node counts what a node does.
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
		end := minute + 1 // until it is restarted
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

// write writes the fleet's series as promtool's input_series.
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
				continue // it adds nothing to any sum, and takes as long to evaluate as another
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

// notation writes values as promtool notes them: runs of the same as one.
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

// fires runs the alert rules over fleets that one Prometheus scrapes. Want are the alerts that fire at any
// time, by name, and by cluster, cause and destination if they have these; each of them alone at its time.
func fires(t *testing.T, fleets []fleet, want ...string) {
	t.Helper()
	var b strings.Builder
	rules, err := filepath.Abs(alerts)
	harness.Check(t, err)
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

// long skips a simulation that takes half a minute, unless make test-alerts runs it.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("CNISCOPE_ALERTS") == "" {
		t.Skip("make test-alerts runs it")
	}
}

// Two hours of a fleet in which something little is always wrong somewhere.
func TestOrdinaryNoiseAlertsNobody(t *testing.T) {
	long(t)
	fires(t, []fleet{{nodes: 500, minutes: 120, pods: noisy, gauges: func(node int) map[string]string {
		minute := node % 50
		return map[string]string{
			`cniscope_cni_oldest_call_seconds{cni_command="ADD"`:                              fmt.Sprintf("0x%d 90 0x70", minute),
			`cniscope_probe_lag_seconds{source="x"`:                                           fmt.Sprintf("0x%d 0.6x2 0x70", minute),
			`cniscope_export_failing_seconds{destination="otlp"`:                              fmt.Sprintf("0x%d 60 120 0x70", minute),
			`cniscope_events_lost_total{source="probe",reason="ring_full"`:                    fmt.Sprintf("0x%d 3x70", minute),
			`cniscope_node_network_ready{job="cniscope"`:                                      "0x4 1x470", // it comes up
			`cniscope_probe_attached{job="cniscope"`:                                          "0 1x470",
			`cniscope_export_operations_dropped_total{destination="otlp",reason="queue_full"`: "0x470",
		}
	}}})
}

// locked is noisy with the lock of iptables held for too long, on every 25th node for an hour.
func locked(node, minute int, r *rand.Rand) []string {
	pods := noisy(node, minute, r)
	if node%25 == 0 && minute >= 40 && minute < 100 {
		for i := range pods {
			pods[i] = "file_lock"
		}
	}
	return pods
}

// The lock of iptables, held too long on 20 nodes of 500 for an hour.
func TestALockOnTwentyNodesIsOneAlert(t *testing.T) {
	fires(t, []fleet{{nodes: 500, minutes: 150, pods: locked, teardowns: locked}},
		`alertname="PodNetworkDegraded",cause="file_lock"`)
}

// Of two clusters it is the one that has it.
func TestALockInOneOfTwoClustersIsOneAlert(t *testing.T) {
	long(t)
	fires(t, []fleet{{cluster: "east", nodes: 250, minutes: 150, pods: locked}, {cluster: "west", nodes: 250, minutes: 150, pods: noisy}},
		`alertname="PodNetworkDegraded",cause="file_lock",cluster="east"`)
}

// Pods that start at once and wait for each other: on one node, on all, and on the only one that there is.
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

// On two nodes of a busy cluster nothing works, which is too little for the cluster's share.
func TestAFewNodesAreOneAlert(t *testing.T) {
	long(t)
	fires(t, []fleet{{nodes: 500, minutes: 120, pods: func(node, minute int, r *rand.Rand) []string {
		switch {
		case node < 2 && minute >= 40:
			return []string{"plugin_error"} // again and again
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

// A rolling update: each cniscope counts from 0 again, and misses two scrapes.
func TestRestartsAlertNobody(t *testing.T) {
	long(t)
	fires(t, []fleet{{
		nodes: 500, minutes: 130, pods: noisy,
		restarted: func(node, minute int) bool { return minute == 40+node/10 },
		absent:    func(node, minute int) bool { return minute == 40+node/10 || minute == 41+node/10 },
	}})
}

func TestANodeThatIsNotReadyIsOneAlert(t *testing.T) {
	fires(t, []fleet{{nodes: 100, minutes: 90, pods: noisy, gauges: func(node int) map[string]string {
		ready := "1x119"
		if node == 8 {
			ready = "1x30 0x88"
		}
		return map[string]string{`cniscope_node_network_ready{job="cniscope"`: ready}
	}}}, `alertname="NodeNetworkNotReady"`)
}

// A plugin that hangs: the runtime kills it after four minutes, and kubelet tries again.
func TestACallThatHangsIsOneAlert(t *testing.T) {
	fires(t, []fleet{{nodes: 100, minutes: 90, pods: noisy, gauges: func(node int) map[string]string {
		age := "0x119"
		if node == 8 {
			age = "0x30 " + strings.Repeat("30 90 150 210 0 ", 17)
		}
		return map[string]string{`cniscope_cni_oldest_call_seconds{cni_command="ADD"`: age}
	}}}, `alertname="PodNetworkCallsHung"`)
}

func TestAnOverloadIsOneAlert(t *testing.T) {
	for name, series := range map[string]map[string]string{
		"lag":  {`cniscope_probe_lag_seconds{job="cniscope"`: "0x30 0.4x88"},
		"loss": {`cniscope_events_lost_total{source="probe",reason="ring_full"`: "0x30 0+5x88"},
	} {
		t.Run(name, func(t *testing.T) {
			fires(t, []fleet{{nodes: 100, minutes: 90, pods: noisy, gauges: func(node int) map[string]string {
				if node%10 != 0 {
					return nil
				}
				return series
			}}}, `alertname="CniscopeOverloaded"`)
		})
	}
}

// The backend is gone, for the whole fleet.
func TestABackendThatIsAwayIsOneAlert(t *testing.T) {
	fires(t, []fleet{{nodes: 100, minutes: 90, pods: noisy, gauges: func(int) map[string]string {
		return map[string]string{`cniscope_export_failing_seconds{destination="otlp"`: "0x30 0+60x88"}
	}}}, `alertname="CniscopeExportFailing",destination="otlp"`)
}

// Nothing is scraped at all; and every tenth node is not.
func TestMetricsThatAreAbsentAreOneAlert(t *testing.T) {
	fires(t, []fleet{{minutes: 60}}, `alertname="CniscopeDown"`)
	fires(t, []fleet{{
		nodes: 100, minutes: 90, pods: noisy,
		absent: func(node, minute int) bool { return node%2 == 0 && minute > 40 },
	}})
}
