//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// containerd starts, configures and stops a pre-installed cniscope.
func TestPreinstalled(t *testing.T) {
	s := stageWithoutScope(t, func(s *stage) rig.Options {
		return rig.Options{
			NRIPlugins: map[string]string{"90-cniscope": program},
			// containerd passes no environment, so this is the whole configuration.
			NRIPluginConfig: map[string][]byte{"cniscope.conf": fmt.Appendf([]byte(patient),
				"[export.otlp]\nendpoint = %q\n[sampling]\nratio = 1.0\n[resource]\nnode = \"told-by-containerd\"\n[state]\ndir = %q\n[log]\nlevel = \"debug\"\n",
				s.jaeger.OTLP(), filepath.Join(t.TempDir(), "run"))},
		}
	})
	first := s.preinstalled(0)
	s.pod(rig.PodOptions{Name: "web-0"})
	s.traced("web-0")

	s.rig.Kill9Containerd()
	harness.Eventually(s, func() error {
		processes, err := s.rig.Processes()
		if slices.ContainsFunc(processes, func(p rig.Process) bool { return p.PID == first }) {
			return errors.New("the plugin outlives its containerd")
		}
		return err
	})
	harness.Check(t, s.rig.RestartContainerd(s.ctx))
	second := s.preinstalled(first)
	t.Logf("the first was process %d, the second is %d", first, second)
	s.pod(rig.PodOptions{Name: "web-1"})
	s.traced("web-1")
	// A pre-installed plugin that crashed is not restarted, and no pod waits.
	harness.Check(t, unix.Kill(second, unix.SIGKILL))
	s.pod(rig.PodOptions{Name: "web-2"})
	for _, x := range s.calls("ADD", 2) {
		if node := x.resource["k8s.node.name"].GetStringValue(); node != "told-by-containerd" {
			t.Fatalf("%s is of node %q", x.Name, node)
		}
	}
}

// The drop-in of configs/ has version 2, which containerd with version 4 understands.
func TestTheDropInSwitchesNRIOn(t *testing.T) {
	text := harness.Must(os.ReadFile(filepath.FromSlash("../../configs/containerd/cniscope-nri.toml")))(t)
	if !strings.Contains(string(text), "\nversion = 2\n") {
		t.Fatal("the drop-in is not of version 2")
	}
	s := set(t, true, rig.Options{
		NRIDisabled: true, // in the main configuration
		DropIns:     map[string]string{"cniscope-nri.toml": string(text)},
	}, scope.Options{TOML: patient})
	s.logged("NRI: registered", 1)
	s.pod(rig.PodOptions{Name: "web-0"})
	s.traced("web-0")
}

func TestCniscopeIsThereBeforeContainerd(t *testing.T) {
	s := set(t, true, rig.Options{}, scope.Options{TOML: patient})
	harness.Check(t, s.scope.Stop())
	s.rig.StopContainerd()
	for _, socket := range []string{s.rig.NRISocket(), s.rig.Socket()} {
		harness.Check(t, os.RemoveAll(socket)) // as after a boot
	}
	s.startScope(scope.Options{TOML: patient})
	s.logged(`"feature unavailable" feature=nri`, 1)
	if strings.Contains(s.scope.LogText(), "NRI: registered") {
		t.Fatal("it registered with nobody")
	}
	harness.Check(t, s.rig.RestartContainerd(s.ctx))
	s.logged("NRI: registered", 1)
	s.pod(rig.PodOptions{Name: "web-0"})
	s.traced("web-0")
}

func stageWithoutScope(t *testing.T, options func(*stage) rig.Options) *stage {
	t.Helper()
	s := setJaeger(t)
	o := options(s)
	o.OTLP = s.jaeger.OTLP()
	s.startRig(o)
	return s
}

func (s *stage) preinstalled(before int) (pid int) {
	s.Helper()
	harness.Eventually(s, func() error {
		processes, err := s.rig.Processes()
		if err != nil {
			return err
		}
		for _, p := range processes {
			if p.Name == "90-cniscope" && p.PID != before && scope.BPFOf(s.T, p.PID).Attached >= 3 {
				pid = p.PID
				return nil
			}
		}
		return fmt.Errorf("no cniscope of containerd's observes among %v", processes)
	})
	return pid
}
