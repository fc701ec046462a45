//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// The probe is switched off in the middle of an ADD, and on again, without a restart.
func TestTheProbeDetachesAndAttachesAgain(t *testing.T) {
	if !scope.SeesAnswers() {
		t.Skip("the process connector loads nothing")
	}
	g := newGate(t)
	s := set(t, true, g.rig(), scope.Options{TOML: patient})
	s.pod(rig.PodOptions{Name: "before"})
	s.traced("before")

	pod := s.podIn(g, "cut")
	loaded := scope.BPFOf(t, s.scope.PID())
	if len(loaded.Programs) == 0 || len(loaded.Maps) == 0 || loaded.Attached < 3 {
		t.Fatalf("not attached: %+v", loaded)
	}
	exported := fmt.Sprintf("[export.otlp]\nendpoint = %q\n", s.endpoint) + whole
	s.options(exported + "[probe]\nenabled = false\n")
	s.logged("feature=probe", 1)
	harness.Eventually(s, loaded.Gone)
	if now := scope.BPFOf(t, s.scope.PID()); len(now.Programs)+len(now.Maps)+now.Attached != 0 {
		t.Errorf("it holds %+v", now)
	}
	t.Logf("gone: programs %v, maps %v", loaded.Programs, loaded.Maps)
	s.spans("cniscope", func(all []*span) error {
		for _, x := range only(of(all, "cut"), "call", "CNI ADD") {
			if x.text("cniscope.partial_reason") == "in progress when the probe was detached" {
				return nil
			}
		}
		return errors.New("the call in progress has not arrived")
	})
	g.open()
	harness.Check(t, <-pod)
	s.pod(rig.PodOptions{Name: "unseen"})

	for i, toml := range []string{"", "[probe]\ndetail = \"commands\"\n", "[probe]\ndetail = \"always\"\n"} {
		s.options(exported + toml)
		s.logged("observing CNI calls", i+2)
		name := fmt.Sprint("after-", i)
		s.pod(rig.PodOptions{Name: name})
		s.traced(name)
	}
	all := s.calls("ADD", 1)
	harness.Equal(t, len(of(all, "unseen")), 0, "spans of a pod that started while it was off")
	if log := s.scope.LogText(); strings.Count(log, "names of kernel locks unavailable") > 0 || strings.Contains(log, "level=ERROR") {
		t.Errorf("attached with less than before:\n%s", log)
	}
}
