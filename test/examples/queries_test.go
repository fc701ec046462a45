//go:build linux

package examples

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

var queried = []string{recording, "../../docs/verdicts.rec.gz", "../../pkg/judge/testdata/cilium-agent-stopped.rec.gz"}

var answers = map[string][]string{
	"One pod's network":                  {"-slow-0", "slow-0"},
	"Who had this address":               {"-web-0", "web-0"},
	"Failed calls, and why":              {"429-802", "a-missing-binary-1402", "broken-0"},
	"Calls that hung":                    {"a-hung-call-1302", "host-local-s-lock-502", "iptables-again-every-second-302", "no-cpu-1702", "the-agent-s-command-1002"},
	"Calls of one cause":                 {"ipv6-dad-402"},
	"Slow commands of a node":            {"slow-0"},
	"What one plugin ran that took long": {"slow-0"},
	"What waited for a lock":             {"xtables-lock-202"},
	"The worst agents":                   {"mid-0", "the-agent-s-command-1002"},
	"Slow calls, and what to do": {
		"-host-local-s-walk-602", "-host-local-s-walk-603", "-host-local-s-walk-604", "a-computation-2002", "a-hung-call-1302",
		"a-leaked-child-1502", "a-slow-agent-902", "a-slow-command-1902", "a-write-to-the-cni-folder-1602",
		"dozens-of-iptables-102", "dozens-of-iptables-103", "host-local-s-lock-502", "host-local-s-walk-602",
		"host-local-s-walk-603", "host-local-s-walk-604", "iptables-again-every-second-302", "ipv6-dad-402", "mid-0",
		"no-cpu-1702", "nobody-listens-1202", "powershell-1801", "powershell-1802", "rtnl-1102", "slow-0",
		"the-agent-s-command-1002", "the-api-server-702", "xtables-lock-202",
	},
}

// question is a heading of docs/traces.md with its queries. Each query may be missing.
type question struct {
	heading, traceql string
	tags             map[string]string
}

func questions(t *testing.T) (all []question) {
	t.Helper()
	text := harness.Must(os.ReadFile("../../docs/traces.md"))(t)
	_, section, _ := strings.Cut(string(text), "\n## Queries\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, below := range strings.Split(section, "\n### ")[1:] {
		heading, rest, _ := strings.Cut(below, "\n")
		q := question{heading: heading}
		if m := regexp.MustCompile("(?m)^Jaeger: `(.*)`$").FindStringSubmatch(rest); m != nil {
			q.tags = map[string]string{}
			for tag := range strings.FieldsSeq(m[1]) {
				key, value, _ := strings.Cut(tag, "=")
				q.tags[key] = value
			}
		}
		if m := regexp.MustCompile("(?s)```traceql\n(.*?)\n```").FindStringSubmatch(rest); m != nil {
			q.traceql = m[1]
		}
		all = append(all, q)
	}
	if len(all) != len(answers) {
		t.Fatalf("docs/traces.md has %d queries, %d are known here", len(all), len(answers))
	}
	return all
}

// ask checks that each query finds exactly the known traces.
func ask(t *testing.T, names map[string]string, find func(question) (traces []string, asked bool, err error)) {
	t.Helper()
	asked := 0
	for _, q := range questions(t) {
		t.Run(q.heading, func(t *testing.T) {
			want, known := answers[q.heading]
			if !known {
				t.Fatal("nobody knows what it is to find")
			}
			traces, is, err := find(q)
			harness.Check(t, err)
			if !is {
				return
			}
			asked++
			var found []string
			for _, id := range traces {
				found = append(found, names[id])
			}
			slices.Sort(found)
			harness.EqualSlices(t, slices.Compact(found), want, "it finds", found)
		})
	}
	if asked < 9 {
		t.Errorf("%d queries were asked", asked)
	}
}

func sent(t *testing.T, endpoint string) (names map[string]string) {
	t.Helper()
	program := harness.Must(scope.Build(t.Context(), t.TempDir()))(t)
	names = map[string]string{}
	for _, file := range queried {
		spans := harness.Must(exec.CommandContext(t.Context(), program, "show", file, "--format", "json").Output())(t)
		for line := range bytes.Lines(spans) {
			name(t, names, line)
		}
		if out, err := exec.CommandContext(t.Context(), program, "show", file, "--otlp", endpoint).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return names
}

func name(t *testing.T, names map[string]string, line []byte) {
	t.Helper()
	ids := regexp.MustCompile(`"traceId":"([0-9a-f]{32})"`).FindSubmatch(line)
	var data tracepb.TracesData
	harness.Check(t, protojson.Unmarshal(regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"[0-9a-f]*",?`).ReplaceAll(line, nil), &data))
	for _, r := range data.ResourceSpans {
		for _, s := range r.ScopeSpans {
			for _, span := range s.Spans {
				for _, a := range r.Resource.Attributes {
					if a.Key == "k8s.pod.name" && ids != nil {
						names[string(ids[1])] = strings.Repeat("-", strings.Count(span.Name, "teardown")) + a.Value.GetStringValue()
					}
				}
				if strings.HasPrefix(span.Name, "pod network ") {
					return
				}
			}
		}
	}
}

// The tag queries of docs/traces.md find the documented traces in Jaeger.
func TestQueriesInJaeger(t *testing.T) {
	tool(t, "jaeger")
	backend := harness.Must(rig.StartJaeger(t.Context(), rig.JaegerOptions{}))(t)
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	names := sent(t, backend.OTLP())
	harness.Eventually(t, func() error {
		all, err := backend.Search(t.Context(), "cniscope", nil)
		return complete(len(all), len(names), err)
	})
	ask(t, names, func(q question) ([]string, bool, error) {
		if q.tags == nil {
			return nil, false, nil
		}
		found, err := backend.Search(t.Context(), "cniscope", q.tags)
		return found, true, err
	})
}

// The TraceQL queries of docs/traces.md find the documented traces in Tempo.
func TestQueriesInTempo(t *testing.T) {
	api, otlp := startTempo(t)
	names := sent(t, otlp)
	search := func(query string) (ids []string, err error) {
		body, err := get(t, api+"/api/search?"+url.Values{"q": {query}, "limit": {"10000"}}.Encode())
		var answer struct{ Traces []struct{ TraceID string } }
		if err := errors.Join(err, json.Unmarshal([]byte(body), &answer)); err != nil {
			return nil, fmt.Errorf("%w: %s", err, body)
		}
		for _, trace := range answer.Traces { // Tempo omits leading zeros
			ids = append(ids, strings.Repeat("0", 32-len(trace.TraceID))+trace.TraceID)
		}
		return ids, nil
	}
	harness.Eventually(t, func() error {
		all, err := search("{}")
		return complete(len(all), len(names), err)
	})
	ask(t, names, func(q question) ([]string, bool, error) {
		found, err := search(q.traceql)
		return found, true, err
	})
}

func complete(found, want int, err error) error {
	if err == nil && found < want {
		err = fmt.Errorf("%d traces of %d", found, want)
	}
	return err
}

// tempoConfig runs Tempo in one process, on loopback, without usage reports.
const tempoConfig = `
server: {log_level: warn, http_listen_address: 127.0.0.1, http_listen_port: HTTP, grpc_listen_address: 127.0.0.1, grpc_listen_port: GRPC}
distributor: {receivers: {otlp: {protocols: {grpc: {endpoint: "OTLP"}}}}}
ingester: {lifecycler: {address: 127.0.0.1, interface_names: [lo], min_ready_duration: 0s, ring: {kvstore: {store: inmemory}, replication_factor: 1}}}
storage: {trace: {backend: local, wal: {path: DIR/wal}, local: {path: DIR/blocks}}}
usage_report: {reporting_enabled: false}
`

func startTempo(t *testing.T) (api, otlp string) {
	t.Helper()
	binary, dir := tool(t, "tempo"), t.TempDir()
	at, grpc, otlp := harness.Address(t), harness.Address(t), harness.Address(t)
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	config := strings.NewReplacer("HTTP", port(at), "GRPC", port(grpc), "OTLP", otlp, "DIR", dir).Replace(tempoConfig)
	file := filepath.Join(dir, "tempo.yaml")
	harness.Check(t, os.WriteFile(file, []byte(config), 0o600))
	harness.Beside(t, exec.Command(binary, "-config.file", file))
	harness.Eventually(t, func() error {
		body, err := get(t, "http://"+at+"/ready")
		if err == nil && strings.TrimSpace(body) != "ready" {
			err = errors.New(body)
		}
		return err
	})
	return "http://" + at, otlp
}
