//go:build linux

package neighbours

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
	"github.com/cniscope/cniscope/test/tied"
)

// detached bounds the time from probe.enabled = false until no program is left, by way of tracing.
var detached = map[string]time.Duration{"system-calls": time.Second, "functions": 5 * time.Second}

// On a busy node the probe leaves the kernel in time, and traces pods again once it is enabled.
func TestTheProbeDetachesOnABusyNode(t *testing.T) {
	lasting(t)
	n := &node{T: t, ctx: harness.Context(t)}
	n.rig = scope.Rig(n.ctx, t, rig.Options{})
	file := filepath.Join(t.TempDir(), "spans.json")
	traced := regexp.MustCompile(`traced_by=(\S+)`)
	with := func(detail, probe string) string {
		return fmt.Sprintf("[sampling]\nratio = 1\n[export.file]\npath = %q\n[probe]\ndetail = %q\n%s", file, detail, probe)
	}
	n.scope = scope.Observe(n.ctx, t, n.rig, scope.Options{Program: program, TOML: with("auto", "")})
	busy(t)
	for i, detail := range []string{"auto", "always"} {
		harness.Check(t, n.scope.SetOptions(with(detail, "")))
		n.traced(file, i+1)
		loaded := scope.BPFOf(t, n.scope.PID())
		began := time.Now()
		harness.Check(t, n.scope.SetOptions(with(detail, "enabled = false\n")))
		harness.Eventually(t, loaded.Gone)
		took := time.Since(began)
		said := traced.FindAllStringSubmatch(n.scope.LogText(), -1)
		if len(said) == 0 {
			t.Fatal("the log does not say how it traces")
		}
		by := said[len(said)-1][1]
		t.Logf("detail %s, by %s: %d programs gone after %s", detail, by, len(loaded.Programs), took.Round(time.Millisecond))
		if left := scope.BPFOf(t, n.scope.PID()).Programs; len(loaded.Programs) == 0 || len(left) > 0 || took > detached[by] {
			t.Errorf("%d programs are left; want more than 0, all gone within %s", len(left), detached[by])
		}
	}
	harness.Check(t, n.scope.SetOptions(with("auto", "")))
	n.traced(file, 3)
}

// traced runs a pod once cniscope observes for the nth time, and waits for its trace.
func (n *node) traced(file string, times int) {
	n.Helper()
	harness.Check(n, n.scope.WaitLog(n.ctx, "observing CNI calls", times))
	n.pod()
	harness.Until(n, "the pod is traced", func() bool {
		spans, _ := os.ReadFile(file)
		return bytes.Contains(spans, fmt.Appendf(nil, "\"web-%d\"", n.pods))
	})
}

// busy runs busy loops, idle processes and plugins of no call until the test ends.
func busy(t *testing.T) {
	t.Helper()
	tools := harness.Must(rig.Tools("cni/bridge"))(t)
	cmd := exec.Command(harness.Build(t, "../noise"), filepath.Join(tools, "cni/bridge"), "sh", "-c", "echo; exec sleep infinity")
	said := harness.Must(cmd.StdoutPipe())(t)
	harness.Check(t, tied.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	_, err := said.Read(make([]byte, 1))
	harness.Check(t, err)
}
