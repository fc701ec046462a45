package timeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/model"
	"github.com/cniscope/cniscope/test/harness"
)

func startedBy(caller event.Caller) func(*event.Exec) {
	return func(e *event.Exec) { e.Caller = caller }
}

// A hundred forged calls a second, each from a process that exits at once and waits for NRI, fill all places in ten
// seconds.
func TestWhoeverPassesForAPluginLeavesTheRuntimeItsPlaces(t *testing.T) {
	for _, forger := range []event.Caller{
		event.CallerHost, event.CallerPrivileged, event.CallerRootless,
		event.CallerAgent,
	} {
		s := tell(t)
		s.line = New(Options{
			Settle: 2 * time.Second, MaxHold: 10 * time.Minute, Processes: 8192, Operations: 1024,
			Images: 2000, Facts: 1000,
		})
		s.at(0, &event.Degraded{Feature: "nri", Restored: true})
		forged, pods := 6000, 0
		for i := range int64(forged) {
			at, p := i*10, fmt.Sprint("forged", i)
			s.plugin(at, p, "ADD", "evil", startedBy(forger), container(p)).exit(at+1, p)
			if i%5 == 0 {
				s.tick(at + 1)
			}
			if i%20 == 0 {
				pods++
				pod := fmt.Sprint("pod", i)
				s.plugin(at+2, pod, "ADD", "bridge", startedBy(event.CallerRuntime), container(pod)).exit(at+3, pod)
			}
		}
		s.end()
		traced := 0
		for _, op := range s.closed {
			if op.Calls[0].Runs[0].Name == "bridge" {
				traced++
			}
		}
		if stats := s.line.Stats(); traced != pods || stats.Refused != 0 || stats.Unanchored == 0 {
			t.Errorf("%s: %d of %d pods are traced, %+v", forger, traced, pods, stats)
		}
	}
}

// An environment can name any container. Multus' daemon runs its callers' delegated plugins.
func TestWhoeverPassesForAPluginIsInNobodysOperation(t *testing.T) {
	forged := func(command string) func(*story) {
		return func(s *story) {
			s.plugin(0, "a", "ADD", "bridge", startedBy(event.CallerRuntime)).exit(10, "a").
				plugin(20, "f", command, "evil", startedBy(event.CallerHost)).exit(21, "f", 1).
				plugin(30, "b", "ADD", "portmap", startedBy(event.CallerRuntime)).exit(40, "b").tick(3000)
		}
	}
	delegated := func(caller event.Caller) func(*story) {
		return func(s *story) {
			s.plugin(0, "m", "ADD", "multus-shim", startedBy(caller)).
				plugin(5, "d", "ADD", "bridge", startedBy(event.CallerAgent), by("multusd")).exit(10, "d").exit(20, "m").tick(3000)
		}
	}
	const multus = "setup c1 0-20: settled\n  ADD eth0 0-20: multus-shim ADD 0-20 [bridge ADD 5-10]"
	stories{
		"a forged ADD": {forged("ADD"), `setup c1 0-40: settled
  ADD eth0 0-40: bridge ADD 0-10, portmap ADD 30-40
setup c1 20-21: settled
  ADD eth0 20-21: evil ADD 20-21 (exit 1)`},
		"a forged DEL": {forged("DEL"), `setup c1 0-40: settled
  ADD eth0 0-40: bridge ADD 0-10, portmap ADD 30-40
teardown c1 20-21: settled
  DEL eth0 20-21: evil DEL 20-21 (exit 1)`},
		"the runtime is in no forger's": {func(s *story) {
			s.plugin(0, "f", "ADD", "evil", startedBy(event.CallerPrivileged)).
				plugin(5, "a", "ADD", "bridge", startedBy(event.CallerRuntime)).exit(10, "a").
				plugin(11, "d", "DEL", "bridge", startedBy(event.CallerRuntime)).exit(12, "d").exit(20, "f").tick(3000)
		}, `setup c1 5-10: next operation
  ADD eth0 5-10: bridge ADD 5-10
setup c1 0-20: settled
  ADD eth0 0-20: evil ADD 0-20
teardown c1 11-12: settled
  DEL eth0 11-12: bridge DEL 11-12`},
		"an agent is in the runtime's": {delegated(event.CallerRuntime), multus},
		"an agent is in a host's":      {delegated(event.CallerHost), multus},
	}.each(t, tell, func(s *story) string { return draw(s.end().closed) })
}

// The runtime's reports of its own calls are not a forger's, nor is what preceded them.
func TestAForgerIsNotBelowTheRuntimesSpans(t *testing.T) {
	s := relayed(t).plugin(0, "a", "ADD", "bridge", startedBy(event.CallerRuntime)).exit(50, "a").
		plugin(10, "f", "ADD", "evil", startedBy(event.CallerHost)).exit(20, "f").
		span(60, "cni.setup_pod_network", -1, 55).tick(9000).end()
	harness.Equal(t, s.closed[0].Calls[0].Runs[0].Name, "bridge")
	harness.Equal(t, departures(s), "9000 setup settled: eth0<cni.setup_pod_network\n9000 setup settled: eth0<-\n")
}

func TestAForgerIsNoPodsFormerAttempt(t *testing.T) {
	pod := func(e *event.Exec) { e.Call.Pod.UID = "u1" }
	s := tell(t)
	s.plugin(0, "f", "ADD", "evil", startedBy(event.CallerHost), pod, container("other")).exit(1, "f").tick(3000).
		plugin(3001, "g", "ADD", "evil", startedBy(event.CallerHost), pod).exit(3002, "g").tick(6000).
		plugin(6001, "a", "ADD", "bridge", startedBy(event.CallerRuntime), pod).exit(6002, "a").tick(9000).
		plugin(9001, "h", "ADD", "evil", startedBy(event.CallerHost), pod).exit(9002, "h").tick(12000).
		plugin(12001, "d", "DEL", "bridge", startedBy(event.CallerRuntime), pod).exit(12002, "d").tick(15000).
		plugin(15001, "n", "ADD", "bridge", startedBy(event.CallerRuntime), pod, container("next")).exit(15002, "n").
		tick(18000).end()
	for _, op := range s.closed {
		if op.Calls[0].Runs[0].Name == "evil" {
			continue
		}
		want, attempt := 1, 0 // the predecessor, and the number before it
		switch {
		case op.ContainerID == "next":
			attempt = 2
		case op.Kind == model.Setup:
			want, attempt = 0, 1
		}
		if len(op.Before) != want || op.Attempt != attempt {
			t.Errorf("%s of %s: attempt %d, follows on %+v", op.Kind, op.ContainerID, op.Attempt, op.Before)
		}
		for _, b := range op.Before {
			harness.Equal(t, b.First, "a", "what the", op.Kind, "of", op.ContainerID, "follows")
		}
	}
}

// A forger that names a pod's container and calls the same agent gets none of its work.
func TestWhatAnAgentDoesForAPodIsNotAForgers(t *testing.T) {
	for _, over := range []bool{false, true} { // whether the pod's connection has ended
		s := tell(t)
		s.plugin(0, "p", "ADD", "bridge", startedBy(event.CallerRuntime)).calls(2, "p", "k").
			plugin(3, "f", "ADD", "evil", startedBy(event.CallerHost)).calls(4, "f", "l")
		if over {
			s.hangUp(5, "p", "k")
		}
		s.command(10, "w", "a", "ip", mentions("c1")).exit(12, "w").exit(20, "f").exit(30, "p").tick(3000).end()
		for _, op := range s.closed {
			run := op.Calls[0].Runs[0]
			if work := workOf("c1", run, ""); run.Name == "evil" && len(work) != 0 || run.Name == "bridge" && len(work) != 1 {
				t.Errorf("over: %v: %s: %q", over, run.Name, work)
			}
		}
	}
}
