//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// hungRunc waits in a verb while DIR has a file of its name, until DIR/fifo has a line.
const hungRunc = `#!/bin/bash
for a; do
	case $a in kill | delete) verb=$a ;; esac
done
[ -n "$verb" ] && [ -e "DIR/$verb" ] && exec 9<>DIR/fifo && read -r -u 9
exec RUNC "$@"
`

// A pod that stays Terminating names the step that hangs; an ordinary removal names none.
func TestTheStepOfARemovalThatHangsIsNamed(t *testing.T) {
	dir := t.TempDir()
	runc := filepath.Join(dir, "hung-runc")
	in := strings.NewReplacer("DIR", dir, "RUNC", filepath.Join(harness.Must(filepath.Abs("../tools/bin"))(t), "runc"))
	harness.Check(t, os.WriteFile(runc, []byte(in.Replace(hungRunc)), 0o755))
	harness.Check(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	s := set(t, rig.Options{Runc: runc}, "[slow]\nhung = \"3s\"\n")
	s.network("pods", rig.Bridge())
	for _, c := range []struct{ file, says string }{
		{"kill", `s so far: hung-runc kill \(pid \d+\) waits in \w*pipe`},
		{"delete", `s so far: hung-runc delete \(pid \d+\) waits in \w*pipe`},
		{"", ""},
	} {
		t.Run(c.file, func(t *testing.T) {
			*s.pods++
			pod := fmt.Sprintf("pod-%d", *s.pods)
			id := harness.Must(s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: pod}))(t)
			file := filepath.Join(dir, c.file)
			if c.file != "" {
				harness.Check(t, os.WriteFile(file, nil, 0o600))
			}
			over := make(chan error, 1)
			go func() { over <- s.rig.StopPod(s.ctx, id) }()
			if c.file != "" {
				s.terminating(pod, c.says)
				harness.Check(t, os.Remove(file))
				harness.Check(t, os.WriteFile(filepath.Join(dir, "fifo"), []byte("\n"), 0o600))
			}
			harness.Check(t, <-over)
			harness.Check(t, s.rig.RemovePod(s.ctx, id))
			if c.file == "" && strings.Contains(s.ask("why", "shop/"+pod)+s.scope.LogText(), pod+" step=") {
				t.Errorf("an ordinary removal is named: %s", s.ask("why", "shop/"+pod))
			}
		})
	}
}

func (s *scene) ask(args ...string) string {
	out, err := exec.CommandContext(s.ctx, program, append(args, "--config", s.scope.Config())...).CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	return string(out)
}

// terminating waits until ps and why name the step, and the log does once.
func (s *scene) terminating(pod, says string) {
	s.Helper()
	for _, args := range [][]string{{"ps"}, {"why", "shop/" + pod}} {
		harness.Eventually(s, func() error { return saysOf(s.ask(args...), "shop/"+pod+": .*"+says) })
	}
	harness.Eventually(s, func() error { return saysOf(s.scope.LogText(), `sandbox step hangs" pod=shop/`+pod+" .*"+says) })
	s.Logf("%s", strings.Join(lines(s.scope.LogText(), `hangs" pod=shop/`+pod), "\n"))
}

func saysOf(text, pattern string) error {
	if !regexp.MustCompile(pattern).MatchString(text) {
		return fmt.Errorf("%q does not say %q", text, pattern)
	}
	return nil
}

// A pod whose shim is stopped stays Terminating for that.
func TestAStoppedShimIsNamed(t *testing.T) {
	s := set(t, rig.Options{}, "[slow]\nhung = \"3s\"\n")
	s.network("pods", rig.Bridge())
	*s.pods++
	id := harness.Must(s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "pod-1"}))(t)
	shim, err := strconv.Atoi(strings.TrimSpace(string(harness.Must(exec.CommandContext(s.ctx, "pgrep", "-f", "containerd-shim.* -id "+id).Output())(t))))
	harness.Check(t, err)
	harness.Check(t, syscall.Kill(shim, syscall.SIGSTOP))
	over := make(chan error, 1)
	go func() { over <- s.rig.StopPod(s.ctx, id) }()
	s.terminating("pod-1", "s so far: the shim \\(pid \\d+\\) is stopped[\"\n]")
	harness.Check(t, syscall.Kill(shim, syscall.SIGCONT))
	t.Log("the runtime may have given up: ", <-over)
	harness.Check(t, s.rig.EndPod(s.ctx, id))
}

// An NRI plugin that delays a stop or a removal is named; one that answers is not.
func TestAnNRIPluginThatDelaysARemovalIsNamed(t *testing.T) {
	s := set(t, rig.Options{}, "[slow]\ncall = \"1m\"\n")
	s.network("pods", rig.Bridge())
	for _, c := range []struct{ act, message, says string }{
		{"stop-sleeps", "sandbox stopped slowly", `NRI plugin nri-actor \(pid \d+\) ran StopPodSandbox" cause=nri_plugin`},
		{"stop-hangs", "sandbox stopped slowly", `did not answer StopPodSandbox within \S+, and (exited|was disconnected)" cause=nri_plugin`},
		{"remove-sleeps", "sandbox was removed slowly", `NRI plugin nri-actor \(pid \d+\) ran RemovePodSandbox" cause=nri_plugin`},
		{"remove-hangs", "sandbox was removed slowly", `did not answer RemovePodSandbox within \S+, and (exited|was disconnected)" cause=nri_plugin`},
		{"answers", "", ""},
	} {
		t.Run(c.act, func(t *testing.T) {
			defer s.acting(c.act)()
			*s.pods++
			name := fmt.Sprintf("pod-%d", *s.pods)
			id := harness.Must(s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: name}))(t)
			s.call(name) // its sandbox is watched
			harness.Check(t, s.rig.EndPod(s.ctx, id))
			s.deleted(name)
			pod := "shop/" + name + " "
			if c.message == "" {
				if said := lines(s.scope.LogText(), "slowly\" pod="+pod); len(said) > 0 {
					t.Errorf("%q", said)
				}
				return
			}
			harness.Eventually(s, func() error { return saysOf(s.scope.LogText(), c.message+`" pod=`+pod+".*"+c.says) })
			if said := lines(s.scope.LogText(), "slowly\" pod="+pod); len(said) != 1 {
				t.Errorf("%q", said)
			}
			harness.Check(t, saysOf(s.ask("why", strings.TrimSpace(pod)), c.says[:20]))
		})
	}
}
