//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// A crash during an ADD fails no pod, and later pods are traced.

func TestCniscopeIsKilledInTheMiddleOfAnAdd(t *testing.T) {
	g := newGate(t)
	s := set(t, true, g.rig(), scope.Options{TOML: patient})
	pod := s.podIn(g, "standing")
	loaded := scope.BPFOf(t, s.scope.PID())
	s.scope.Kill9()
	s.pod(rig.PodOptions{Name: "unseen"})
	s.startScope(scope.Options{TOML: patient}) // while the plugin waits
	g.open()
	harness.Check(t, <-pod)

	t.Run("nothing of it stays in the kernel", func(t *testing.T) {
		if !scope.SeesAnswers() {
			t.Skip("the process connector loads nothing")
		}
		if len(loaded.Programs) == 0 || len(loaded.Maps) == 0 {
			t.Fatalf("nothing was loaded: %+v", loaded)
		}
		harness.Eventually(s, loaded.Gone)
		t.Logf("gone: programs %v, maps %v", loaded.Programs, loaded.Maps)
	})
	t.Run("the next one takes over", func(*testing.T) {
		s.pod(rig.PodOptions{Name: "next"})
		s.traced("next")
	})
	t.Run("the call in flight is found, and said to be partial", func(t *testing.T) {
		if !harness.FirstPIDs() {
			t.Skip("calls in flight at start are found in the initial PID namespace only")
		}
		var call *span
		s.spans("cniscope", func(all []*span) error {
			for _, x := range only(of(all, "standing"), "call", "CNI ADD") {
				if x.text("cni.ifname") == "eth0" {
					call = x
					return nil
				}
			}
			return errors.New("its call has not arrived")
		})
		harness.Equal(t, call.text("cniscope.partial_reason"), "already running when cniscope started", "partial")
		standing := only(of(s.calls("ADD", 1), "standing"), "plugin", "gate ADD")
		if len(standing) != 1 || !standing[0].attrs["cniscope.in_flight_at_start"].GetBoolValue() || standing[0].attrs["process.exit.code"] == nil {
			t.Errorf("the plugin that waited: %v", standing)
		}
	})
}

func TestContainerdIsKilledInTheMiddleOfAnAdd(t *testing.T) {
	g := newGate(t)
	s := set(t, true, g.rig(), scope.Options{TOML: patient})
	before := s.pod(rig.PodOptions{Name: "before"})
	pod := s.podIn(g, "torn")
	s.rig.Kill9Containerd()
	if err := <-pod; err == nil {
		t.Error("a pod runs whose containerd is gone")
	}
	g.open()
	harness.Check(t, s.rig.RestartContainerd(s.ctx))
	s.logged("NRI: registered", 2)

	s.pod(rig.PodOptions{Name: "after"})
	s.traced("after")
	harness.Check(t, s.rig.StopPod(s.ctx, before))
	s.spans("cniscope", func(all []*span) error {
		if len(only(of(all, "before"), "call", "CNI DEL")) == 0 {
			return errors.New("the teardown of a pod of containerd's former life has not arrived")
		}
		return nil
	})
	torn := s.spans("cniscope", func(all []*span) error {
		if len(only(of(all, "torn"), "call", "CNI ADD")) < 2 {
			return errors.New("the call that was torn off has not arrived")
		}
		return nil
	})
	for _, x := range only(of(torn, "torn"), "call", "CNI ADD") {
		t.Logf("torn: %s: %s; %v", x.text("cni.ifname"), x.GetStatus().GetMessage(), x.attrs["cniscope.never_run"])
		if x.text("cni.ifname") == "eth0" && !x.failed() {
			t.Error("the call whose chain broke off does not count as failed")
		}
	}
}

// At a regular stop open operations are sent as they are.
func TestCniscopeIsStoppedInTheMiddleOfAnAdd(t *testing.T) {
	g := newGate(t)
	// Ordinary operations are not sampled; an interrupted one is not ordinary.
	s := set(t, false, g.rig(), scope.Options{TOML: "[sampling]\nratio = 0.0\nper_second = 0\n"})
	pod := s.podIn(g, "web-0")
	began := time.Now()
	harness.Check(t, s.scope.Stop()) // exit code 0
	t.Logf("ended within %s", time.Since(began).Round(time.Millisecond))
	all := s.calls("ADD", 1)
	unfinished := 0
	for _, x := range only(all, "plugin", "gate ADD") {
		if x.attrs["cniscope.unfinished"].GetBoolValue() {
			unfinished++
		}
	}
	harness.Equal(t, unfinished, 1, "the plugin that had not ended was not sent as unfinished", all)
	for _, x := range only(all, "call", "CNI ADD") {
		if why := x.text("cniscope.partial_reason"); why != "in progress when cniscope exited" {
			t.Errorf("%s is partial because %q", x.text("cni.ifname"), why)
		}
		if x.failed() {
			t.Errorf("%s counts as failed: %s", x.text("cni.ifname"), x.GetStatus().GetMessage())
		}
	}
	g.open()
	harness.Check(t, <-pod)
}

// traced waits for a pod's setup in Jaeger, with data from NRI.
func (s *stage) traced(pod string) {
	s.Helper()
	s.spans("cniscope", func(all []*span) error {
		all = of(all, pod)
		for _, x := range append(only(all, "call", "CNI ADD"), only(all, "operation", "")...) {
			if x.attrs["cniscope.sandbox_running"].GetBoolValue() && x.text("k8s.pod.ip") != "" {
				return nil
			}
		}
		return fmt.Errorf("%s's setup has not arrived with what NRI knows; %d spans of it have", pod, len(all))
	})
}
