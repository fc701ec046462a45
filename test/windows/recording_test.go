//go:build linux

package windows

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

var update = flag.Bool("update", false, "put the recording into examples/recordings")

// callsAgent is a plugin that runs powershell.exe, and calls an agent which does so, too.
const callsAgent = `{"cniVersion":"1.0.0","name":"antrea","plugins":[{"type":"antrea","powershell":true,"agent":"\\\\.\\pipe\\antrea-test"}]}`

// agent starts the agent that plugins call.
func (n *node) agent(args ...string) {
	n.t.Helper()
	line := append([]string{`C:\antrea\antrea-agent.exe`, "-pipe", agentPipe}, args...)
	n.start("antrea-agent", []string{"STANDIN_POWERSHELL=2500ms"}, line...)
}

// The story that this project began with is written down on Windows, and drawn on another system.
func TestARecordingIsDrawnElsewhere(t *testing.T) {
	n := newNode(t, callsAgent)
	n.agent("-after", "1s", "-blind")
	n.containerd("http://127.0.0.1:1")
	n.options("http://127.0.0.1:1", "")
	ended := make(chan string, 1)
	go func() {
		out, _ := n.run(`C:\cniscope\cniscope.exe`, "record", `C:\windows-seed.rec`, "--for", "25s", "--config", `C:\cniscope\cniscope.toml`)
		ended <- out
	}()
	harness.Eventually(t, func() error { // it writes the beginning at once
		_, err := os.Stat(n.path("windows-seed.rec"))
		return err
	})
	n.pods("db-6cqff")
	said := <-ended
	data, err := os.ReadFile(n.path("windows-seed.rec"))
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	file := filepath.Join(t.TempDir(), "windows-seed.rec")
	harness.Check(t, os.WriteFile(file, data, 0o600))
	drawn, err := exec.Command("go", "run", "../../plugin/cniscope", "show", file).CombinedOutput()
	harness.Check(t, err)
	for _, want := range []string{"CNI ADD", "antrea ADD", "powershell", "default/db-6cqff"} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("%s is not drawn:\n%s", want, drawn)
		}
	}
	if *update && !t.Failed() {
		harness.Check(t, os.WriteFile("../../examples/recordings/windows-seed.rec", data, 0o644))
	}
}
