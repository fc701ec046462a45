//go:build linux

package scenarios

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// Sixteen pods use one agent, which also runs an unrelated command. Statements marked certain match
// its log.
func TestManyPodsThroughOneAgent(t *testing.T) {
	const pods = 16
	s := set(t, rig.Options{}, "")
	address := "unix " + filepath.Join(t.TempDir(), "antrea.sock")
	agent := s.startAgent(address, 100*time.Millisecond, 10*time.Millisecond)
	s.network("through-agent", through(address))
	s.crowd("crowd", pods)
	var last *call
	for i := range pods {
		last = s.call(fmt.Sprint("crowd-", i))
	}
	agent.stop()

	drawn := map[string]int{}
	certain, candidates := map[string]bool{}, 0
	for _, x := range last.All {
		evidence := x.Attrs["cniscope.attribution"]
		if evidence == "" || x.Attrs["cniscope.kind"] != "command" { // its own kernel requests are not in its log
			continue
		}
		drawn[x.Attrs["process.pid"]]++
		if evidence == "candidate" {
			candidates++
			continue
		}
		pid, _ := strconv.Atoi(x.Attrs["process.pid"])
		did, known := agent.ran[pid]
		if !known || did.container != x.Attrs["sandbox.id"] {
			t.Errorf("%s (pid %d) is said to be certain for %s; the agent ran %q for %q", x.Name, pid, x.Attrs["sandbox.id"], did.line, did.container)
		}
		certain[x.Attrs["process.pid"]] = true
	}
	for pid, n := range drawn {
		if n > 1 {
			t.Errorf("pid %s is drawn %d times", pid, n)
		}
	}
	mentioned := 0
	for pid, did := range agent.ran {
		if did.container == "" || !strings.Contains(did.line, "-"+hashOf(did.container)) && !strings.Contains(did.line, did.container) {
			continue
		}
		mentioned++
		if !certain[strconv.Itoa(pid)] {
			t.Errorf("%q names its pod, and is not certain", did.line)
		}
	}
	harness.Equal(t, mentioned, 2*pods, "commands named their pod")
	n := len(certain) + candidates
	t.Logf("of %d commands drawn, %d are certain and %d candidates: %.0f %%; the agent ran %d", n, len(certain), candidates, 100*float64(candidates)/float64(n), len(agent.ran))
}
