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

// In three bursts of 30 pods, with the default sampling, each slow or failed pod keeps the spans below its call.
func TestABurstKeepsSlowAndFailedPods(t *testing.T) {
	const pods, slow, failed = 30, "5", "0" // the last digit of the pod's name
	s := set(t, rig.Options{Plugins: map[string][]byte{
		"mixed": rig.Script(`if [ "$CNI_COMMAND" = ADD ]; then case "$CNI_ARGS;" in ` +
			`*K8S_POD_NAME=burst-?-` + slow + `\;*|*K8S_POD_NAME=burst-?-?` + slow + `\;*) sleep 1;; ` +
			`*K8S_POD_NAME=burst-?-` + failed + `\;*|*K8S_POD_NAME=burst-?-?` + failed + `\;*) fail 999 "no policy for this pod";; esac; fi`),
	}}, "[slow]\ncall = \"900ms\"\n[sampling]\nratio = 1.0\n")
	s.record()
	s.network("burst", rig.Bridge(rig.Conf{"ipMasq": false}), rig.Test("mixed"))
	for round := range 3 {
		var all sync.WaitGroup
		for i := range pods {
			all.Go(func() {
				name := fmt.Sprintf("burst-%d-%d", round, i)
				id, err := s.rig.RunPod(s.ctx, rig.PodOptions{Namespace: "shop", Name: name})
				harness.Equal(t, strings.HasSuffix(name, failed), (err != nil), "pod", name, err)
				if err == nil {
					harness.Check(t, errors.Join(s.rig.StopPod(s.ctx, id), s.rig.RemovePod(s.ctx, id)))
				}
			})
		}
		all.Wait()
		for i := range pods {
			name := fmt.Sprintf("burst-%d-%d", round, i)
			call := s.call(name)
			isSlow := call.Attrs["cniscope.slow"] == "true"
			if strings.HasSuffix(name, slow) && (!isSlow || len(call.Below("command")) == 0) {
				t.Errorf("%s: slow %v, %d commands, partial %q", name, isSlow, len(call.Below("command")), call.Attrs["cniscope.partial"])
			}
			if problem := isSlow || strings.HasSuffix(name, failed); problem && (call.Attrs["cniscope.reduced"] != "" || len(call.Below("run")) != 2) {
				t.Errorf("%s has %d runs, reduced: %q", name, len(call.Below("run")), call.Attrs["cniscope.reduced"])
			}
		}
	}
}
