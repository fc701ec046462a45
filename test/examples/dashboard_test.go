//go:build linux

package examples

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

type panel struct {
	Title   string
	Targets []struct {
		Expr     string
		Exemplar bool
	}
}

func panels(t *testing.T) []panel {
	t.Helper()
	data := harness.Must(os.ReadFile(dashboard))(t)
	var d struct{ Panels []panel }
	harness.Check(t, json.Unmarshal(data, &d))
	return d.Panels
}

// filled replaces Grafana's variables: a rate covers 20 scrapes.
var filled = strings.NewReplacer("$__rate_interval", "20s", "$__range", "5m", "$instance", ".*", "$cluster", ".*")

type prometheus struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, target, node string) *prometheus {
	t.Helper()
	binary, dir, at := tool(t, "prometheus"), t.TempDir(), harness.Address(t)
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nscrape_configs:\n"+
		"- job_name: cniscope\n  static_configs: [{targets: [%q], labels: {instance: %s, cluster: rig}}]\n", target, node)
	file := filepath.Join(dir, "prometheus.yaml")
	harness.Check(t, os.WriteFile(file, []byte(config), 0o600))
	harness.Beside(t, exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+at, "--enable-feature=exemplar-storage", "--log.level=warn"))
	p := &prometheus{t, "http://" + at + "/api/v1/"}
	harness.Eventually(t, func() error {
		_, err := get(t, "http://"+at+"/-/ready")
		return err
	})
	return p
}

type sample struct {
	Metric map[string]string
	Value  []any
}

func (p *prometheus) ask(to any, path string, values ...string) {
	p.t.Helper()
	q := url.Values{}
	for i := 0; i < len(values); i += 2 {
		q.Add(values[i], values[i+1])
	}
	body := harness.Must(get(p.t, p.url+path+"?"+q.Encode()))(p.t)
	answer := struct {
		Status, Error string
		Data          any
	}{Data: to}
	harness.Check(p.t, json.Unmarshal([]byte(body), &answer))
	if answer.Status != "success" {
		p.t.Fatalf("%s %q: %s", path, values, answer.Error)
	}
}

func (p *prometheus) query(expr string) []sample {
	p.t.Helper()
	var answer struct{ Result []sample }
	p.ask(&answer, "query", "query", filled.Replace(expr))
	return answer.Result
}

// until waits for data.
func (p *prometheus) until(expr string) {
	p.t.Helper()
	harness.Eventually(p.t, func() error {
		if len(p.query(expr)) == 0 {
			return fmt.Errorf("Prometheus has no %s: %v", expr, p.query("cniscope_cni_calls_total"))
		}
		return nil
	})
}

// troubled has pods that start normally, wait for a file lock, run a slow command, or fail, by their names.
func troubled(lock string) rig.Options {
	return rig.Options{
		Networks: []rig.Network{{CNIVersion: "1.1.0", Plugins: []rig.Plugin{rig.Bridge(), rig.Test("policy")}}},
		Plugins: map[string][]byte{"policy": rig.Script(`
case "$CNI_COMMAND $CNI_ARGS" in
"ADD "*K8S_POD_NAME=slow-*) sleep 0.6 ;;
"ADD "*K8S_POD_NAME=locked-*) flock ` + lock + ` true ;;
"ADD "*K8S_POD_NAME=broken-*) fail 11 "no" ;;
esac`)},
	}
}

const dashboardOptions = `
[metrics]
listen = %q
[slow]
call = "400ms"
[limits]
settle = "500ms"
[export.file]
path = %q
[export.spool]
dir = %q
`

// Every query of the dashboard returns data, and exemplars name exported traces.
func TestTheDashboardOfANode(t *testing.T) {
	harness.Root(t)
	if os.Getenv("CNISCOPE_DASHBOARD") == "" {
		t.Skip("make test-dashboard runs it")
	}
	tool(t, "prometheus")
	ctx, dir := harness.Context(t), t.TempDir()
	lock, spans, at := filepath.Join(dir, "lock"), filepath.Join(dir, "spans.json"), harness.Address(t)
	program := harness.Must(scope.Build(ctx, dir))(t)
	r := scope.Rig(ctx, t, troubled(lock))
	scope.Observe(ctx, t, r, scope.Options{Program: program, TOML: fmt.Sprintf(dashboardOptions, at, spans, filepath.Join(dir, "spool"))})
	p := startPrometheus(t, at, "rig-node")

	p.until("cniscope_leaked_leases") // a look a minute
	// A rate begins with the second time that a series grows.
	begin, all := time.Now(), panels(t)
	for round := range 2 {
		troubles(t, r, round, lock)
		p.until(fmt.Sprintf(`cniscope_cni_calls_total{cni_command="ADD",outcome="failed"} > %d`, round))
		p.until(fmt.Sprintf("timestamp(up) > %d", time.Now().Unix()+1)) // all of it, by a later scrape
	}
	for _, panel := range all {
		for _, target := range panel.Targets {
			if !slices.ContainsFunc(p.query(target.Expr), func(s sample) bool { return s.Value[1] != "NaN" }) {
				t.Errorf("no data, though there are such pods: %s: %s", panel.Title, filled.Replace(target.Expr))
			}
		}
	}
	variables(t, p)
	exemplars(t, p, all, spans, begin)
}

func troubles(t *testing.T, r *rig.Rig, round int, lock string) {
	t.Helper()
	held, err := os.OpenFile(lock, os.O_CREATE|os.O_RDWR, 0o600)
	harness.Check(t, err)
	defer held.Close()
	for _, kind := range []string{"web", "slow", "locked", "broken"} {
		if kind == "locked" {
			harness.Check(t, syscall.Flock(int(held.Fd()), syscall.LOCK_EX))
			time.AfterFunc(900*time.Millisecond, func() { _ = syscall.Flock(int(held.Fd()), syscall.LOCK_UN) })
		}
		id, err := r.RunPod(t.Context(), rig.PodOptions{Namespace: "shop", Name: fmt.Sprintf("%s-%d", kind, round)})
		if kind == "broken" {
			if err == nil {
				t.Error("the pod whose plugin fails was run")
			}
			continue
		}
		harness.Check(t, err)
		harness.Check(t, r.RemovePod(t.Context(), id))
	}
	_, err = r.Status(t.Context())
	harness.Check(t, err)
}

func variables(t *testing.T, p *prometheus) {
	t.Helper()
	for label, want := range map[string]string{"cluster": "rig", "instance": "rig-node"} {
		var values []string
		p.ask(&values, "label/"+label+"/values", "match[]", `cniscope_build_info{cluster=~".*"}`)
		harness.EqualSlices(t, values, []string{want}, "the variable", label, "offers")
	}
}

// exemplars checks that the traces of exemplars are in the file, and that verdicts have exemplars.
func exemplars(t *testing.T, p *prometheus, all []panel, spans string, since time.Time) {
	t.Helper()
	written := harness.Must(os.ReadFile(spans))(t)
	kept := map[string]bool{}
	for _, id := range regexp.MustCompile(`"traceId":"([0-9a-f]{32})"`).FindAllSubmatch(written, -1) {
		kept[string(id[1])] = true
	}
	for _, panel := range all {
		for _, target := range panel.Targets {
			if !target.Exemplar {
				continue
			}
			var found []struct {
				Exemplars []struct{ Labels map[string]string }
			}
			p.ask(&found, "query_exemplars", "query", filled.Replace(target.Expr), "start", since.Format(time.RFC3339), "end", time.Now().Format(time.RFC3339))
			n := 0
			for _, series := range found {
				for _, e := range series.Exemplars {
					if n++; !kept[e.Labels["trace_id"]] {
						t.Errorf("%s: the exemplar %q leads nowhere", panel.Title, e.Labels)
					}
				}
			}
			if n == 0 {
				t.Errorf("%s: no exemplars", panel.Title)
			}
		}
	}
}
