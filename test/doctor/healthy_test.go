//go:build linux

package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/pkg/doctor"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

func TestAHealthyNodeGivesNoFindings(t *testing.T) {
	tools := harness.Must(rig.Tools("containerd"))(t)
	for _, version := range []string{"containerd", "containerd-2.3/containerd", "containerd-1.7/containerd"} {
		t.Run(version, func(t *testing.T) {
			if _, err := rig.Tools(version); err != nil {
				t.Skip(err)
			}
			healthy(t, filepath.Dir(filepath.Join(tools, version)))
		})
	}
}

func healthy(t *testing.T, containerd string) {
	n := newNode(t, rig.Options{Containerd: containerd})
	_, err := n.rig.RunPod(n.ctx, rig.PodOptions{Name: "web-0"})
	harness.Check(t, err)
	scope.Observe(n.ctx, t, n.rig, scope.Options{Program: program})
	_, unreadable := os.Readlink("/proc/1/ns/net")
	if unreadable != nil {
		n.finds("kernel", doctor.Note, "cannot check whether it runs in the node's namespaces")
	} else {
		n.silent("kernel")
	}
	n.silent("runtime", "cni-folder", "cni-binaries", "cni-version", "cni-loaded", "cni-order", "network-ready", "network-pods",
		"service-proxies", "service-rules", "leftovers", "overlap", "calls", "locks", "nri")

	report := n.examine()
	t.Logf("doctor took %s", report.Took)
	for _, f := range report.Findings {
		// The test cannot set this machine's clock.
		if f.Check != "clock" && (f.Check != "kernel" || unreadable == nil) {
			t.Errorf("found on a healthy node: %+v", f)
		}
	}
}

func unchecked(name string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\? (.*, )?` + name + `(, .*)?: could not check: `)
}

// Without root, doctor also lists the checks that it could not make.
func TestAnOrdinaryUserIsToldWhatCouldNotBeChecked(t *testing.T) {
	n := newNode(t, rig.Options{})
	cmd := n.command()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	code := exitCode(t, err)
	for _, name := range []string{"cni-folder", "cni-binaries", "network-ready", "network-pods", "service-rules", "kernel"} {
		if !unchecked(name).Match(out) {
			t.Errorf("it is not said that %s could not be checked", name)
		}
	}
	want := doctor.ExitUnchecked
	if strings.Contains(string(out), "! clock") {
		want = doctor.ExitFindings
	}
	harness.Equal(t, code, want, "ended with")
	if t.Failed() {
		t.Logf("%s", out)
	}
}
