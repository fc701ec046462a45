//go:build linux

package windows

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

var update = flag.Bool("update", false, "put the recording into examples/recordings")

// callsAgent is a plugin that runs powershell.exe, and calls an agent that runs it too.
const callsAgent = `{"cniVersion":"1.0.0","name":"antrea","plugins":[{"type":"antrea","powershell":true,"agent":"\\\\.\\pipe\\antrea-test"}]}`

func (n *node) agent(args ...string) {
	n.t.Helper()
	line := append([]string{`C:\antrea\antrea-agent.exe`, "-pipe", agentPipe}, args...)
	n.start("antrea-agent", []string{"STANDIN_POWERSHELL=2500ms"}, line...)
}

// A recording of powershell.exe in a pod's setup, made on Windows, is drawn on another system.
func TestARecordingIsDrawnElsewhere(t *testing.T) {
	n := newNode(t, callsAgent)
	n.agent("-after", "1s", "-blind")
	n.containerd("http://127.0.0.1:1")
	n.options("http://127.0.0.1:1", "")
	log := n.start("record", nil, `C:\cniscope\cniscope.exe`, "record", `C:\windows-seed.rec`, "--config", `C:\cniscope\cniscope.toml`)
	n.writes(log, "trusted to run CNI plugins")
	n.pods("db-6cqff")
	show := filepath.Join(t.TempDir(), "cniscope")
	if out, err := exec.Command("go", "build", "-o", show, "../../plugin/cniscope").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file := filepath.Join(t.TempDir(), "windows-seed.rec")
	var data []byte
	harness.Eventually(t, func() (err error) { // the file holds the events so far
		if data, err = os.ReadFile(n.path("windows-seed.rec")); err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			return err
		}
		drawn, err := exec.Command(show, "show", file).CombinedOutput()
		for _, want := range []string{"CNI ADD", "antrea ADD", "powershell", "default/db-6cqff"} {
			err = errors.Join(err, harness.Contains(string(drawn), want))
		}
		return err
	})
	if *update && !t.Failed() {
		harness.Check(t, os.WriteFile("../../examples/recordings/windows-seed.rec", data, 0o644))
	}
}
