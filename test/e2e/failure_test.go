//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// readable options tolerate a busy machine and log as JSON.
const readable = `
[limits]
settle = "2s"
[log]
format = "json"
[slow]
call = "1m"
[[slow.rule]]
command = "Get-Net*"
threshold = "50ms"
`

func spoil(body string) []byte {
	return rig.Script("[ $CNI_COMMAND = ADD ] && {\n" + body + "\n}")
}

var answer = regexp.MustCompile(`: code \d+: "[^"]*"`)

// statusOf matches a status, without parts that the tested cniscope cannot observe.
func statusOf(whole string) *regexp.Regexp {
	if !scope.SeesAnswers() {
		whole = answer.ReplaceAllString(whole, "")
	}
	return regexp.MustCompile(whole)
}

// A failure is reported on the span where it happened, and only there.
func TestAFailedAddSaysWhatFailed(t *testing.T) {
	s := set(t, true, rig.Options{}, scope.Options{TOML: readable})
	for _, c := range []struct {
		name     string
		chain    []string // behind bridge
		body     string   // of the plugin `odd`
		deadline time.Duration

		status    string
		errorType string
		failed    string   // the failed plugin; empty if it did not start
		code      int64    // its exit code, or
		signal    string   // its signal
		never     []string // plugins that did not start
		left      string   // a command that outlives the plugin
	}{{
		name: "exits-1", chain: []string{"odd", "portmap"}, body: `fail 11 "no address left"`,
		status: `^plugin odd failed \(code 11\): "no address left"$`, errorType: "1", failed: "odd", code: 1, never: []string{"portmap"},
	}, {
		name: "crashes", chain: []string{"portmap", "odd"}, body: `kill -SEGV $$`,
		status: `^plugin odd was killed by SIGSEGV after [0-9.]+m?s$`, errorType: "SIGSEGV", failed: "odd", signal: "SIGSEGV",
	}, {
		name: "out-of-time", chain: []string{"odd", "portmap"}, body: `exec sleep 60`, deadline: 5 * time.Second,
		status: `^plugin odd was killed by SIGKILL after [0-9.]+m?s \(sender unknown\)$`, errorType: "SIGKILL", failed: "odd", signal: "SIGKILL",
		never: []string{"portmap"},
	}, {
		name: "out-of-time-with-child", chain: []string{"odd"}, body: `sleep 9 >/dev/null 2>&1`, deadline: 5 * time.Second,
		status: `^plugin odd was killed by SIGKILL after [0-9.]+m?s \(sender unknown\)$`, errorType: "SIGKILL", failed: "odd", signal: "SIGKILL",
		left: "sleep",
	}, {
		name: "missing-binary", chain: []string{"absent", "portmap"},
		status: `^plugin absent, portmap did not run$`, errorType: "never run", never: []string{"absent", "portmap"},
	}} {
		t.Run(c.name, func(t *testing.T) {
			s := s.sub(t)
			harness.Check(t, s.rig.AddPlugin("odd", spoil(c.body)))
			s.network(c.name, c.chain...)
			ctx := s.ctx
			if c.deadline != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
				defer cancel()
			}
			_, err := s.rig.RunPod(ctx, rig.PodOptions{Namespace: "shop", Name: c.name})
			if err == nil {
				t.Fatal("the pod runs")
			}
			t.Log(err)
			all := s.podSpans(c.name, "CNI ADD", "CNI DEL")

			call := one(t, all, "call", "CNI ADD", "eth0")
			if text := call.GetStatus().GetMessage(); !call.failed() || !statusOf(c.status).MatchString(text) {
				t.Errorf("the call's status is %q", text)
			}
			if call.text("error.type") != c.errorType || call.text("cniscope.failed_plugin") != c.failed {
				t.Errorf("error.type %q, cniscope.failed_plugin %q", call.text("error.type"), call.text("cniscope.failed_plugin"))
			}
			if never := call.texts("cniscope.never_run"); !slices.Equal(never, c.never) {
				t.Errorf("never run are said to be %q", never)
			}
			wrong := []*span{call}
			if c.failed != "" {
				plugin := one(t, all, "plugin", c.failed+" ADD", "eth0")
				wrong = append(wrong, plugin)
				if plugin.text("cniscope.signal") != c.signal || plugin.text("error.type") != c.errorType || plugin.attrs["process.exit.code"].GetIntValue() != c.code {
					t.Errorf("the plugin's span says %v", plugin.attrs)
				}
				if text := plugin.GetStatus().GetMessage(); !strings.HasPrefix(call.GetStatus().GetMessage(), text) || text == "" {
					t.Errorf("the plugin's status is %q", text)
				}
				said := strings.TrimSuffix(plugin.GetStatus().GetMessage(), " (sender unknown)")
				if age := text.Round(plugin.took()).String(); c.signal != "" && !strings.HasSuffix(said, " after "+age) {
					t.Errorf("%q after %s", said, age)
				}
			}
			for _, x := range all {
				if outlived := x.attrs["cniscope.outlived"].GetBoolValue(); outlived != (c.left != "" && x.kind() == "command" && x.Name == c.left) {
					t.Errorf("%s outlived its plugin: %t", x.Name, outlived)
				}
			}
			// DEL also fails at the missing binary, and a plugin's second program has its own span.
			for _, x := range all {
				expected := slices.Contains(wrong, x) || c.name == "missing-binary" && x.Name == "CNI DEL" ||
					x.kind() == "command" && x.parent() == wrong[len(wrong)-1].id() && x.text("cniscope.signal") == c.signal
				if x.failed() && !expected {
					t.Errorf("%s %s has status Error, too: %s", x.Name, x.text("cni.ifname"), x.GetStatus().GetMessage())
				}
			}
			s.warned(c.name, "CNI call failed", call)
		})
	}
	s.wholeTraces()
}

func (s *stage) warned(pod, message string, call *span) {
	s.Helper()
	var lines []map[string]any
	for line := range strings.Lines(s.scope.LogText()) {
		var l map[string]any
		harness.Check(s.T, json.Unmarshal([]byte(line), &l))
		if l["level"] == "WARN" && l["pod"] == "shop/"+pod && l["call"] == "ADD eth0" {
			lines = append(lines, l)
		}
	}
	if len(lines) != 1 {
		s.Fatalf("%d warnings of pod %s: %v", len(lines), pod, lines)
	}
	l := lines[0]
	if l["msg"] != message || l["node"] != "rig-node" || l["trace_id"] != call.trace() {
		s.Errorf("the warning says %v; the call's trace is %s", l, call.trace())
	}
	why, want := fmt.Sprint(l["most"]), call.text("cniscope.biggest_part")
	if verdict := call.text("cniscope.verdict"); verdict != "" {
		why, want = fmt.Sprint(l["verdict"], l["cause"]), verdict+call.text("cniscope.cause")
	}
	if l["took"] != float64(text.Round(call.took())) || !strings.HasSuffix(why, want) {
		s.Errorf("the warning says %v; the call took %s: %s", l, call.took(), want)
	}
	if failure, failed := l["failure"]; failed != call.failed() || failed && failure != call.GetStatus().GetMessage() {
		s.Errorf("the warning says %v; the call's status is %q", l, call.GetStatus().GetMessage())
	}
}
