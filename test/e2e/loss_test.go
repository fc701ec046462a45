//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/rig"
	"github.com/cniscope/cniscope/test/scope"
)

const served = "[metrics]\nlisten = \"127.0.0.1:0\"\n"

// With 2,000 unrelated programs per second and sixteen concurrent pods no event is lost and no operation is partial.
func TestNothingIsLostBesideOtherPrograms(t *testing.T) {
	const pods = 16
	s := set(t, false, rig.Options{}, scope.Options{TOML: patient + served + "[probe]\nlinger = \"1s\"\n"})
	ended := runPrograms(t, 2000)
	var running sync.WaitGroup
	for i := range pods {
		running.Go(func() {
			id, err := s.rig.RunPod(s.ctx, rig.PodOptions{Name: fmt.Sprint("pod-", i)})
			if err == nil {
				err = s.rig.RemovePod(s.ctx, id)
			}
			if err != nil {
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
	for series, n := range s.scrape() {
		if strings.HasPrefix(series, "cniscope_events_lost_total") && n != 0 {
			t.Errorf("%s is %v", series, n)
		}
	}
	s.tablesAreEmpty()
}

// With a minimal ring that is not read during pod setups, losses are counted, affected spans are marked, and the next
// pod is complete. NRI is off, because containerd would wait for a stopped plugin.
func TestWhatATooSmallRingLosesIsSaid(t *testing.T) {
	s := set(t, false, rig.Options{NRIDisabled: true}, scope.Options{
		NoNRI: true, TOML: served + "[probe]\nring = \"64KiB\"\ndetail = \"always\"\n",
	})
	// A single pod that is read at once fits even into this ring.
	harness.Check(t, s.rig.RemovePod(s.ctx, s.pod(rig.PodOptions{Name: "first"})))
	first := s.podSpans("first", "CNI ADD", "CNI DEL")

	harness.Check(t, syscall.Kill(s.scope.PID(), syscall.SIGSTOP))
	for i := range 4 {
		// The ports alone exceed the ring.
		var ports []rig.HostPort
		for j := range int32(8) {
			ports = append(ports, rig.HostPort{Host: 20_000 + 10*int32(i) + j, Container: 8_000 + j})
		}
		s.pod(rig.PodOptions{Name: fmt.Sprint("unseen-", i), HostPorts: ports})
	}
	harness.Check(t, syscall.Kill(s.scope.PID(), syscall.SIGCONT))
	var all []*span
	harness.Eventually(s, func() error {
		if s.ringFull() == 0 {
			return errors.New("nothing was lost")
		}
		all = s.spans("cniscope", func([]*span) error { return nil })
		if len(of(all, "unseen-0")) == 0 {
			return fmt.Errorf("nothing is told of the pods that were not looked at")
		}
		return nil
	})
	s.lossIsOver(first)
	all = s.spans("cniscope", func([]*span) error { return nil })

	partial := 0
	for i := range 4 {
		pod := of(all, fmt.Sprint("unseen-", i))
		says := slices.ContainsFunc(pod, func(x *span) bool { return x.text("cniscope.partial_reason") != "" })
		if says {
			partial++
		}
		if lacking := lacks(pod, setup(first)); len(pod) > 0 && !says && lacking != "" {
			t.Errorf("unseen-%d says nothing of what it lacks: %s", i, lacking)
		}
	}
	if partial == 0 {
		t.Error("no operation says that it is partial")
	}
	s.tablesAreEmpty()
}

// ringFull returns the events lost because the ring was full.
func (s *stage) ringFull() float64 {
	return s.scrape()[`cniscope_events_lost_total{reason="ring_full",source="probe"}`]
}

// lossIsOver checks that a pod without losses equals the first one and is not partial. On a busy machine it retries,
// because one pod may overflow the ring.
func (s *stage) lossIsOver(first []*span) {
	s.Helper()
	const most = 20
	for i := range most {
		before, name := s.ringFull(), fmt.Sprint("last-", i)
		s.pod(rig.PodOptions{Name: name})
		var last []*span
		s.spans("cniscope", func(all []*span) error {
			last = of(all, name)
			if len(only(last, "call", "CNI ADD")) < 2 && s.ringFull() == before {
				return fmt.Errorf("pod %s has %d spans", name, len(last))
			}
			return nil
		})
		if s.ringFull() > before {
			continue
		}
		for _, x := range last {
			harness.Equal(s, x.text("cniscope.partial_reason"), "", x.Name, "of the last pod is partial")
		}
		harness.Equal(s, lacks(last, setup(first)), "", "the last pod lacks what the first")
		return
	}
	s.Errorf("each of %d pods more was too much for the ring", most)
}

func setup(all []*span) []*span {
	return slices.DeleteFunc(slices.Clone(all), func(x *span) bool { return x.text("cni.command") != "ADD" })
}

// ranPlugins returns the distinct plugins of a pod's setup.
func ranPlugins(all []*span) string {
	var names []string
	for _, x := range only(setup(all), "plugin", "") {
		names = append(names, strings.TrimSuffix(x.Name, " ADD"))
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// lacks names programs with fewer runs than for another pod. More runs are valid, since iptables retries after
// concurrent changes.
func lacks(pod, other []*span) string {
	ran := map[string]int{}
	for _, x := range pod {
		ran[x.kind()+" "+x.Name]++
	}
	lacking := ""
	for _, x := range other {
		if !x.plugin() && x.kind() != "command" {
			continue
		}
		if name := x.kind() + " " + x.Name; ran[name] == 0 {
			lacking += x.Name + " "
		} else {
			ran[name]--
		}
	}
	return lacking
}

// tablesAreEmpty waits until cniscope's BPF tables are empty; entries for a pod's network expire after a minute.
func (s *stage) tablesAreEmpty() {
	s.Helper()
	var kept map[string]int
	for deadline := time.Now().Add(100 * time.Second); time.Now().Before(deadline); time.Sleep(time.Second) {
		kept = tables(s.T, s.scope.PID())
		delete(kept, "anchors") // the runtime
		delete(kept, "habits")  // agents' periodic programs, up to 512, kept forever
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
