//go:build linux

package examples

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

const (
	npdScript = "../../examples/node-problem-detector/cniscope-doctor.sh"
	npdConfig = "../../examples/node-problem-detector/cniscope-monitor.json"
)

func report(findings ...string) string {
	all := make([]string, len(findings))
	for i, f := range findings {
		head, summary, _ := strings.Cut(f, ": ")
		level, check, _ := strings.Cut(head, " ")
		all[i] = fmt.Sprintf("{\n\"check\": %q,\n\"level\": %q,\n\"summary\": %q,\n\"evidence\": [%q]\n}", check, level, summary, `it says "level": "problem"`)
	}
	return fmt.Sprintf(`{"schema": "cniscope.dev/doctor/v1", "findings": [%s], "checks": []}`, strings.Join(all, ","))
}

func doctor(t *testing.T, prints string, code int) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "doctor")
	harness.Check(t, os.WriteFile(file+".json", []byte(prints), 0o600))
	harness.Check(t, os.WriteFile(file, fmt.Appendf(nil, "#!/bin/sh\ncat %s.json\nexit %d\n", file, code), 0o700))
	return file
}

func TestTheScriptForNodeProblemDetector(t *testing.T) {
	long := "problem cni-folder: " + strings.Repeat("there is no network ", 9)
	for name, c := range map[string]struct {
		doctor string
		code   int
		says   string
	}{
		"healthy":             {doctor(t, report(), 0), 0, "cniscope doctor found no problem"},
		"a warning":           {doctor(t, report("warning clock: not synchronised"), 1), 0, "cniscope doctor found no problem"},
		"a problem":           {doctor(t, report("warning clock: no", `problem cni-order: "10-a.conf" is used`), 1), 1, `cni-order: "10-a.conf" is used`},
		"two, and long":       {doctor(t, report(long, "problem kernel: no BTF"), 1), 1, ("cni-folder: " + strings.Repeat("there is no network ", 9))[:70] + " (+1 more)"},
		"checks that are not": {doctor(t, report(), 3), 2, "cniscope doctor could not make every check, and found no problem"},
		"no report":           {doctor(t, "panic", 2), 2, "cniscope doctor says nothing that can be read, and ended with 2"},
		"no cniscope":         {"/nowhere/cniscope doctor", 2, "cniscope is not installed here: /nowhere/cniscope"},
		"it hangs":            {"sleep 60", 2, "cniscope doctor did not end within 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), npdScript)
			cmd.Env = append(os.Environ(), "CNISCOPE_TIMEOUT=1", "CNISCOPE_DOCTOR="+c.doctor)
			out, _ := cmd.Output()
			if got := strings.TrimSuffix(string(out), "\n"); got != c.says || cmd.ProcessState.ExitCode() != c.code || len(got) > 80 {
				t.Errorf("%d %q, want %d %q", cmd.ProcessState.ExitCode(), got, c.code, c.says)
			}
		})
	}
}

type nodeAPI struct {
	mu   sync.Mutex
	last map[string]string // status and reason and message, by type of condition
}

func (a *nodeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var node struct {
		Status struct {
			Conditions []struct{ Type, Status, Reason, Message string }
		}
	}
	if json.Unmarshal(body, &node) == nil {
		a.mu.Lock()
		for _, c := range node.Status.Conditions {
			a.last[c.Type] = c.Status + " " + c.Reason + " " + c.Message
		}
		a.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"rig-node"}}`)
}

// node-problem-detector sets the condition, and clears it.
func TestNodeProblemDetector(t *testing.T) {
	binary := tool(t, "nodeproblemdetector")
	api := &nodeAPI{last: map[string]string{}}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	program := doctor(t, report("problem cni-binaries: host-local is missing"), 1)
	config := harness.Must(os.ReadFile(npdConfig))(t)
	script := harness.Must(filepath.Abs(npdScript))(t)
	moved := strings.NewReplacer("/etc/node-problem-detector/cniscope-doctor.sh", script, `"60s"`, `"1s"`).Replace(string(config))
	file := filepath.Join(t.TempDir(), "monitor.json")
	harness.Check(t, os.WriteFile(file, []byte(moved), 0o600))
	cmd := exec.Command(binary, "--config.custom-plugin-monitor="+file, "--hostname-override=rig-node", "--port=0", "--prometheus-port=0",
		"--apiserver-override="+server.URL+"?inClusterConfig=false")
	cmd.Env = append(os.Environ(), "CNISCOPE_DOCTOR="+program)
	harness.Beside(t, cmd)
	becomes := func(want string) {
		t.Helper()
		harness.Eventually(t, func() error {
			api.mu.Lock()
			defer api.mu.Unlock()
			if got := api.last["PodNetworkProblem"]; got != want {
				return fmt.Errorf("the condition is %q, not %q", got, want)
			}
			return nil
		})
	}
	becomes("True CniscopeDoctorFoundProblem cni-binaries: host-local is missing")
	harness.Check(t, os.WriteFile(program+".json", []byte(report()), 0o600))
	harness.Check(t, os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\ncat %s.json\n", program), 0o700))
	becomes("False PodNetworkIsHealthy cniscope doctor found no problem")
}
