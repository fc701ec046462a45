//go:build linux

package scenarios

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const leaked = "stale attachment found"

func lines(log, text string) (found []string) {
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// Of a sandbox that containerd lost without DEL, the attachment and its release are reported.
func TestAnADDWithoutADEL(t *testing.T) {
	const options = "[leaks]\nafter = \"2s\"\n"
	s := set(t, rig.Options{}, options)
	s.network("pods", rig.Bridge())
	s.add(rig.PodOptions{}, false) // a regular end
	gone, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "gone-0"})
	harness.Check(t, err)
	_, err = s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: "stays-0"})
	harness.Check(t, err)
	s.call("stays-0")
	if said := lines(s.scope.LogText(), leaked); len(said) > 0 {
		t.Errorf("nothing is leaked yet: %v", said)
	}
	harness.Check(t, s.rig.ForgetPods(s.ctx, gone))
	harness.Check(t, s.scope.WaitLog(s.ctx, leaked, 1))
	s.whose(s.scope, gone)

	harness.Check(t, s.scope.Stop())
	next := scope.Observe(s.ctx, t, s.rig, scope.Options{Program: program, TOML: options})
	harness.Check(t, next.WaitLog(s.ctx, leaked, 1))
	line := s.whose(next, gone)

	quoted := regexp.MustCompile(`remedy="((?:[^"\\]|\\.)*)"`).FindStringSubmatch(line)
	if quoted == nil {
		t.Fatalf("no remedy: %s", line)
	}
	remedy := harness.Must(strconv.Unquote(`"` + quoted[1] + `"`))(t)
	command := harness.Must(s.rig.Inside(""))(t)
	command = append(command, "sh", "-ec", remedy)
	if out, err := exec.CommandContext(s.ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", remedy, err, out)
	}
	harness.Check(t, next.WaitLog(s.ctx, "stale attachment released", 1))
}

func (s *scene) whose(cniscope *scope.Scope, sandbox string) string {
	s.Helper()
	said := lines(cniscope.LogText(), leaked)
	for _, want := range []string{"pod=shop/gone-0", "network=pods", "ifname=eth0", "sandbox=" + sandbox, "CNI_COMMAND=DEL"} {
		if len(said) != 1 || !strings.Contains(said[0], want) {
			s.Fatal(fmt.Sprintf("want one line that says %q:", want), said)
		}
	}
	return said[0]
}
