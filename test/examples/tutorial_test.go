//go:build linux

package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/scope"
)

// The commands of docs/tutorial.md lead from a recording to a trace in a Jaeger.
func TestTutorial(t *testing.T) {
	jaeger := start(t, jaegerConfig, nil)
	program := harness.Must(scope.Build(t.Context(), t.TempDir()))(t)
	text := harness.Must(os.ReadFile("../../docs/tutorial.md"))(t)
	tutorial, _, _ := strings.Cut(string(text), "\n## 5.")
	local := strings.NewReplacer("bin/cniscope", program, "127.0.0.1:4317", jaeger.at("4317"),
		"127.0.0.1:16686", jaeger.at("16686"), "/tmp/three-pods.html", filepath.Join(t.TempDir(), "page.html"))
	outputs := map[string]string{}
	run := func(name, command string) error {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", local.Replace(command))
		cmd.Dir = "../.."
		out, err := cmd.Output()
		outputs[name] += string(out)
		return err
	}
	tutorial = regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(tutorial, "")
	for _, command := range regexp.MustCompile(`(?m)^    (\S.*)$`).FindAllStringSubmatch(tutorial, -1) {
		switch name, _, _ := strings.Cut(command[1], " "); name {
		case "git", "make":
		case "jaeger":
			if command[1] != "jaeger --config "+strings.TrimPrefix(jaegerConfig, "../../") {
				t.Errorf("%s: another configuration is tested", command[1])
			}
		case "curl": // Jaeger has a trace some time after it took the spans
			harness.Eventually(t, func() error {
				err := run(name, command[1])
				if err == nil && !strings.Contains(outputs[name], "cniscope.verdict") {
					err = fmt.Errorf("no verdict in %s", outputs[name])
				}
				return err
			})
		default:
			harness.Check(t, run(name, command[1]))
		}
	}
	if !strings.Contains(outputs["bin/cniscope"], "2.1s of 2.22s") || outputs["curl"] == "" {
		t.Errorf("the tutorial shows %q", outputs)
	}
}
