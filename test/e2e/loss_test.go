//go:build linux

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const served = "[metrics]\nlisten = \"127.0.0.1:0\"\n"

// Beside 2,000 unrelated programs per second no event is lost and no operation is partial.
func TestNothingIsLostBesideOtherPrograms(t *testing.T) {
	const pods = 16
	s := set(t, false, rig.Options{}, scope.Options{TOML: patient + served + "[probe]\nlinger = \"1s\"\n"})
	ended := runPrograms(t, 2000)
	var running sync.WaitGroup
	for i := range pods {
		running.Go(func() {
			if err := s.rig.PodComesAndGoes(s.ctx, rig.PodOptions{Name: fmt.Sprint("pod-", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	t.Logf("beside them: %s", ended())

	all := s.calls("ADD", 2*pods)
	for _, x := range all {
		harness.Equal(t, x.text("cniscope.partial_reason"), "", x.Name, x.text("k8s.pod.name"), "is partial")
	}
	for i := range pods {
		if got, want := ranPlugins(of(all, fmt.Sprint("pod-", i))), "bridge host-local loopback portmap"; got != want {
			t.Errorf("pod-%d: %s, want %s", i, got, want)
		}
	}
	for series, n := range s.scope.Scrape(s) {
		if strings.HasPrefix(series, "cniscope_events_lost_total") && n != 0 {
			t.Errorf("%s is %v", series, n)
		}
	}
	s.tablesAreEmpty()
}

func setup(all []*span) []*span {
	return slices.DeleteFunc(slices.Clone(all), func(x *span) bool { return x.text("cni.command") != "ADD" })
}

func ranPlugins(all []*span) string {
	var names []string
	for _, x := range only(setup(all), "plugin", "") {
		names = append(names, strings.TrimSuffix(x.Name, " ADD"))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// tablesAreEmpty waits until cniscope's BPF tables are empty; entries for a pod's network expire after a minute.
func (s *stage) tablesAreEmpty() {
	s.Helper()
	var kept map[string]int
	for deadline := time.Now().Add(100 * time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
		kept = tables(s.T, s.scope.PID())
		delete(kept, "anchors") // the runtime
		delete(kept, "habits")  // agents' periodic programs, up to 512, kept forever
		// The latest 1,024 sandboxes: without them, a stop would be taken for a start.
		delete(kept, "sandboxes")
		if len(kept) < 5 {
			s.Fatalf("only these tables were found: %v", kept)
		}
		if !slices.ContainsFunc(values(kept), func(n int) bool { return n > 0 }) {
			return
		}
	}
	s.Errorf("still in the kernel's tables: %v", kept)
}

// losses counts log lines about lost events. Beside other programs delays are logged too, which are no loss.
func (s *stage) losses() (lines int) {
	for line := range strings.Lines(s.scope.LogText()) {
		if strings.Contains(line, "events were lost") || strings.Contains(line, "overloaded") && strings.Contains(line, " lost=") {
			lines++
		}
	}
	return lines
}

func values(m map[string]int) (all []int) {
	for _, n := range m {
		all = append(all, n)
	}
	return all
}
