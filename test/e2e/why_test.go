//go:build linux

package e2e

import (
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

// With default options, without backend and spool, the node explains slow and ordinary pods.
func TestTheNodeRemembersWithDefaultOptions(t *testing.T) {
	s := setRemembering(t)
	for _, pod := range []string{"slow-0", "web-0"} {
		_, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: pod})
		harness.Check(t, err)
	}
	var slow string
	harness.Eventually(t, func() error { // NRI ends the operation
		out, err := s.cli("why", "shop/slow-0")
		slow = out
		return err
	})
	harness.Says(t, slow, "shop/slow-0  CNI ADD eth0", "SLOW: more than 2s", "plugin sleeper ran sleep", "→ ", "sleeper ADD")
	var web string
	harness.Eventually(t, func() error {
		out, err := s.cli("why", "web-0")
		web = out
		return err
	})
	harness.Says(t, web, "shop/web-0  CNI ADD eth0  ordinary: ")
	if out, err := s.cli("why", "shop/nobody"); err == nil || !strings.Contains(out, "no CNI call of pod shop/nobody since") {
		t.Errorf("why shop/nobody: %v:\n%s", err, out)
	}
	top, err := s.cli("top")
	if err != nil || !strings.Contains(top, "1 of 2 pod setups and teardowns in the last") || !strings.Contains(top, "shop/slow-0") {
		t.Errorf("top: %v:\n%s", err, top)
	}
	last, err := s.cli("show", "--last", "1h")
	if err != nil || !strings.Contains(last, "shop/slow-0") || !strings.Contains(last, "1 more trace, one line each") {
		t.Errorf("show --last: %v:\n%s", err, last)
	}
	s.overTheReadOnlySocket()
}

func setRemembering(t *testing.T) *stage {
	t.Helper()
	harness.Root(t)
	s := &stage{T: t, ctx: harness.Context(t)}
	unmasked := rig.Bridge(rig.Conf{"ipMasq": false})
	s.startRig(rig.Options{
		Networks: []rig.Network{{Plugins: []rig.Plugin{unmasked, rig.Test("sleeper")}}},
		Plugins:  map[string][]byte{"sleeper": rig.Script(`case "$CNI_COMMAND $CNI_ARGS" in ADD*K8S_POD_NAME=slow*) sleep 3 ;; esac`)},
	})
	s.scope = scope.Observe(s.ctx, t, s.rig, scope.Options{Program: program, TOML: "[control]\nread_group = \"60947\"\n"})
	return s
}

func (s *stage) cli(args ...string) (string, error) {
	out, err := exec.CommandContext(s.ctx, program, append(args, "--config", s.scope.Config())...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return string(out), err
}

func (s *stage) overTheReadOnlySocket() {
	s.Helper()
	r := control.Reader{Path: filepath.Join(s.rig.Dir(), "run", "read", control.ReadSocket)}
	found, err := r.Operations(s.ctx, control.Query{Problems: true})
	harness.Check(s.T, err)
	if len(found.Operations) != 1 || found.Of != 2 {
		s.Fatalf("%+v", found)
	}
	l := found.Operations[0]
	if l.Namespace != "shop" || l.Pod != "slow-0" || l.Cause != "slow_command" || l.Result != control.Slow || !l.Certain || l.Foreign || l.PodUID == "" || l.Plugin != "bridge" {
		s.Errorf("%+v", l)
	}
	spans, err := r.Spans(s.ctx, l.TraceID)
	if err != nil || !strings.Contains(string(spans), "sleeper ADD") {
		s.Errorf("%v: %s", err, spans)
	}
	document, err := r.Doctor(s.ctx)
	var findings struct{ Schema string }
	if err != nil || json.Unmarshal(document, &findings) != nil || findings.Schema != "cniscope.dev/doctor/v1" {
		s.Errorf("%v: %s", err, document)
	}
}
