//go:build linux

package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

// examples/ci/gate.sh beside a running cniscope: a chain within its limits, one beyond, and one that never runs.
func TestTheExampleGatesACI(t *testing.T) {
	s := set(t, false, sleeper("0.3"), scope.Options{})
	path := t.TempDir()
	harness.Check(t, os.Symlink(program, filepath.Join(path, "cniscope")))
	recording := filepath.Join(path, "cni.rec.gz")
	gate := func(pod string, limits ...string) (code int, said string) {
		t.Helper()
		begun, over := filepath.Join(path, "begun"+pod), filepath.Join(path, "over"+pod)
		cmd := exec.CommandContext(s.ctx, "../../examples/ci/gate.sh", "sh", "-c", `touch "$0"; until [ -e "$1" ]; do sleep 0.1; done`, begun, over)
		cmd.Env = append(os.Environ(), append(limits, "PATH="+path+":"+os.Getenv("PATH"), "RECORDING="+recording, "CONFIG="+s.scope.Config())...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		harness.Check(t, cmd.Start())
		harness.Eventually(s, func() error {
			_, err := os.Stat(begun)
			return err
		})
		if pod != "" {
			s.pod(rig.PodOptions{Namespace: "shop", Name: pod})
		}
		harness.Check(t, os.WriteFile(over, nil, 0o600))
		var failed *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &failed) {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), out.String()
	}

	for _, c := range []struct {
		pod, limits string
		code        int
		said        string
	}{
		{"within-0", "MAX_CALL=1m MAX_COMMAND=1m MAX_COMMANDS=100", 0, "all within the limits"},
		{"slow-0", "MAX_CALL=1m MAX_COMMAND=250ms MAX_COMMANDS=100", 1, "shop/slow-0  CNI ADD eth0 ran sleep for "},
		{"many-0", "MAX_CALL=1m MAX_COMMAND=1m MAX_COMMANDS=0", 1, "(--max-commands)"},
		{"", "MAX_CALL=1m", 2, "there is no call to compare"},
	} {
		code, said := gate(c.pod, strings.Fields(c.limits)...)
		if code != c.code || !strings.Contains(said, c.said) {
			t.Errorf("%q with %s: exits with %d, want %d; says:\n%s", c.pod, c.limits, code, c.code, said)
		}
		page, err := os.ReadFile(filepath.Join(path, "cni.html"))
		if err != nil || c.pod != "" && !strings.Contains(string(page), "shop/"+c.pod) {
			t.Errorf("%q: the page: %v, %d bytes", c.pod, err, len(page))
		}
	}
}
