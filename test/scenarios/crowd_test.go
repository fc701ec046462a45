//go:build linux

package scenarios

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
)

// Sixteen pods ask one agent at once, which besides runs a command every 10 ms that has to
// do with none of them. What is said to be certain is right, by the agent's own log; what
// names its pod's container, or is made of that, is certain.
func TestManyPodsThroughOneAgent(t *testing.T) {
	const pods = 16
	s := set(t, rig.Options{}, "")
	address := "unix " + filepath.Join(t.TempDir(), "antrea.sock")
	agent := s.startAgent(address, 100*time.Millisecond, 10*time.Millisecond)
	s.network("through-agent", through(address))
	var all sync.WaitGroup
	errs := make([]error, pods)
	for i := range pods {
		all.Go(func() {
			_, errs[i] = s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: fmt.Sprint("crowd-", i)})
		})
	}
	all.Wait()
	harness.Check(t, errors.Join(errs...))
	var last *call
	for i := range pods {
		last = s.call(fmt.Sprint("crowd-", i))
	}
	agent.stop() // its log is complete

	drawn := map[string]int{}
	certain, candidates := map[string]bool{}, 0
	for _, x := range last.all {
		evidence := x.attrs["cniscope.attribution"]
		if evidence == "" || x.attrs["cniscope.kind"] != "command" { // what it asks the kernel for itself is not in its log
			continue
		}
		drawn[x.attrs["process.pid"]]++
		if evidence == "candidate" {
			candidates++
			continue
		}
		pid, _ := strconv.Atoi(x.attrs["process.pid"])
		did, known := agent.ran[pid]
		if !known || did.container != x.attrs["sandbox.id"] {
			t.Errorf("%s (pid %d) is said to be certain for %s; the agent ran %q for %q", x.Name, pid, x.attrs["sandbox.id"], did.line, did.container)
		}
		certain[x.attrs["process.pid"]] = true
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
	if mentioned != 2*pods {
		t.Errorf("%d commands named their pod", mentioned)
	}
	n := len(certain) + candidates
	t.Logf("of %d commands drawn, %d are certain and %d candidates: %.0f %%; the agent ran %d", n, len(certain), candidates, 100*float64(candidates)/float64(n), len(agent.ran))
}
