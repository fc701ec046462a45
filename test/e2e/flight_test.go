//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func sleeper(seconds string) rig.Options {
	return rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{rig.Bridge(), rig.Test("sleeper")}}},
		Plugins:  map[string][]byte{"sleeper": rig.Script(`[ "$CNI_COMMAND" = ADD ] && sleep ` + seconds)},
	}
}

func TestACallUnderWayIsListedAndRecordedAndSaidToHang(t *testing.T) {
	s := set(t, false, sleeper("3"), scope.Options{TOML: "[slow]\nhung = \"1s\"\n"})
	recording := filepath.Join(s.scope.Dir, "beside.rec")
	record := exec.CommandContext(s.ctx, program, "record", recording, "--for", "8s", "--config", s.scope.Config())
	harness.Check(t, record.Start())
	done := s.rig.BeginPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "web-0"})

	var calls []control.Call
	harness.Eventually(s, func() error {
		out, err := exec.CommandContext(s.ctx, program, "ps", "--format", "json", "--config", s.scope.Config()).Output()
		if err != nil {
			return err
		}
		var document struct{ Calls []control.Call }
		if err := json.Unmarshal(out, &document); err != nil {
			return err
		}
		calls = document.Calls
		if len(calls) != 1 || calls[0].Runs != "sleep" {
			return fmt.Errorf("cniscope ps: %s", out)
		}
		return nil
	})
	c := calls[0]
	if c.Namespace != "shop" || c.Pod != "web-0" || c.Command != "ADD" || c.IfName != "eth0" || c.Plugin != "sleeper" || c.PID == 0 || c.State != "S" || c.Age < c.Running {
		t.Errorf("cniscope ps: %+v", c)
	}
	harness.Says(t, c.Waits, "nanosleep")
	harness.Check(t, <-done)

	all := s.calls("ADD", 2)
	marks := only(all, "hung", "CNI ADD hung")
	if len(marks) != 1 {
		t.Fatalf("%d marks that a call hung", len(marks))
	}
	var final *span
	for _, x := range only(all, "call", "CNI ADD") {
		if x.text("cni.ifname") == "eth0" {
			final = x
		}
	}
	if len(final.Links) != 1 || string(final.Links[0].SpanId) != string(marks[0].SpanId) || final.trace() != marks[0].trace() || final.parent() != marks[0].parent() {
		t.Errorf("the call does not link to the mark: %v", final.Links)
	}
	harness.Says(t, s.scope.LogText(), `msg="CNI call hangs" pod=shop/web-0`)

	harness.Check(t, record.Wait())
	shown, err := exec.CommandContext(context.Background(), program, "show", recording).CombinedOutput()
	if err != nil || !strings.Contains(string(shown), "shop/web-0  CNI ADD eth0") || !strings.Contains(string(shown), "sleep") {
		t.Errorf("the recording made beside: %v\n%s", err, shown)
	}
}
