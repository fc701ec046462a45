//go:build linux

package scenarios

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/spans"
)

// In three bursts of 30 pods, with the default sampling, each slow or failed pod keeps the spans that a replay without
// sampling has. The rest is counted by a line and a metric.
func TestABurstKeepsSlowAndFailedPods(t *testing.T) {
	const pods, slow, failed = 30, "5", "0" // the last digit of the pod's name
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"mixed": rig.Script(`if [ "$CNI_COMMAND" = ADD ]; then case "$CNI_ARGS;" in ` +
			`*K8S_POD_NAME=burst-?-` + slow + `\;*|*K8S_POD_NAME=burst-?-?` + slow + `\;*) sleep 1;; ` +
			`*K8S_POD_NAME=burst-?-` + failed + `\;*|*K8S_POD_NAME=burst-?-?` + failed + `\;*) fail 999 "no policy for this pod";; esac; fi`),
	}}, "[slow]\ncall = \"900ms\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n[sampling]\n")
	s.network("burst", rig.Bridge(rig.Conf{"ipMasq": false}), rig.Test("mixed"))
	for round := range 3 {
		recording := s.recorded()
		var all sync.WaitGroup
		for i := range pods {
			all.Go(func() {
				name := fmt.Sprintf("burst-%d-%d", round, i)
				id, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: name})
				harness.Equal(t, strings.HasSuffix(name, failed), (err != nil), "pod", name, err)
				if err == nil {
					harness.Check(t, s.rig.EndPod(s.ctx, id))
				}
			})
		}
		all.Wait()
		for i := range pods {
			name := fmt.Sprintf("burst-%d-%d", round, i)
			call := s.call(name)
			isSlow := call.Attrs["cniscope.slow"] == "true"
			if strings.HasSuffix(name, slow) && (!isSlow || len(call.Below("command")) == 0) {
				t.Errorf("%s: slow %v, %d commands, partial %q", name, isSlow, len(call.Below("command")), call.Attrs["cniscope.partial"])
			}
			if problem := isSlow || strings.HasSuffix(name, failed); problem && (call.Attrs["cniscope.reduced"] != "" || len(call.Below("run")) != 2) {
				t.Errorf("%s has %d runs, reduced: %q", name, len(call.Below("run")), call.Attrs["cniscope.reduced"])
			}
		}
		s.keepsProblemsOf(recording())
	}
	s.countsReduced()
}

// keepsProblemsOf compares the spans of slow and failed operations with those of a recording, by their IDs.
func (s *scene) keepsProblemsOf(recording string) {
	s.Helper()
	file := recording + ".jsonl"
	out, err := exec.CommandContext(s.ctx, program, "show", "--output", "otlp", "--all-commands", recording).Output()
	harness.Check(s.T, errors.Join(err, os.WriteFile(file, out, 0o600)))
	replayed := harness.Must(spans.Read(file))(s.T)
	problems, expected := map[string]bool{}, 0 // by trace
	for _, x := range replayed {
		if x.Attrs["cniscope.slow"] == "true" || x.Attrs["cniscope.kind"] == "call" && x.Status.Code == int(tracepb.Status_STATUS_CODE_ERROR) {
			problems[x.TraceID] = true
		}
	}
	harness.Eventually(s, func() error {
		exported, err := spans.Read(s.spans)
		have := map[string]bool{}
		for _, x := range exported {
			have[x.TraceID+x.SpanID] = true
		}
		expected = 0
		for _, x := range replayed {
			if !problems[x.TraceID] {
				continue
			}
			if expected++; !have[x.TraceID+x.SpanID] {
				err = errors.Join(err, fmt.Errorf("span %s of %s is not exported", x.Name, x.Attrs["k8s.pod.name"]))
			}
		}
		return err
	})
	s.Logf("%d slow or failed operations have their %d spans", len(problems), expected)
}

// countsReduced compares the operations without the spans below their calls with the log's and the metric's count.
func (s *scene) countsReduced() {
	s.Helper()
	logged := regexp.MustCompile(`msg="burst exported without the spans below calls" .*operations=(\d+) slow_or_failed=\d+ `)
	harness.Eventually(s, func() error {
		exported, err := spans.Read(s.spans)
		reduced := map[string]bool{}
		for _, x := range exported {
			if x.Attrs["cniscope.reduced"] == "true" {
				reduced[x.ParentSpanID] = true
			}
		}
		said, lines := 0, logged.FindAllStringSubmatch(s.scope.LogText(), -1)
		for _, line := range lines {
			n, _ := strconv.Atoi(line[1])
			said += n
		}
		counted := s.scope.Scrape(s)[`cniscope_operations_total{decision="reduced",reason="sampled"}`]
		what := fmt.Sprintf("%d operations are reduced, %d in %d lines, metric %v", len(reduced), said, len(lines), counted)
		if said == 0 || said != len(reduced) || counted != float64(said) {
			return errors.Join(err, errors.New(what))
		}
		s.Log(what)
		return err
	})
}
