//go:build linux

package tenants

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/record"
	"github.com/cniscope/cniscope/test/harness"
	"github.com/cniscope/cniscope/test/spans"
)

type finding struct {
	kind, what string
	sandbox    string
	at         time.Time
}

const (
	serverFollowed = "servers followed that are theirs"
	strangersEvent = "events of theirs"
	strangersSpan  = "spans of theirs in a pod's trace"
	wrongPod       = "certain spans in the wrong pod's trace"
	forged         = "spans of forged calls"
	theirWords     = "attributes with what they chose"
	theirFunctions = "functions of their programs"
	untraced       = "ordinary calls untraced"
	partial        = "ordinary calls not seen whole"
	misjudged      = "ordinary calls misjudged"
)

var kinds = []string{serverFollowed, strangersEvent, strangersSpan, wrongPod, forged, theirWords, theirFunctions, untraced, partial, misjudged}

// mark is in every text that the tenants choose, and forgedTrace is the trace that they claim as a parent.
const (
	mark        = "mallory"
	forgedTrace = "3a110c3a110c3a110c3a110c3a110c3a"
	// theirSources is in the source files of their functions' names.
	theirSources = "test/tenants/hostile/"
)

func summary(found []finding) string {
	count := map[string]int{}
	for _, f := range found {
		count[f.kind]++
	}
	var lines []string
	for _, kind := range kinds {
		lines = append(lines, fmt.Sprintf("%6d %s", count[kind], kind))
	}
	return strings.Join(lines, "\n")
}

// report fails a test with findings, and prints up to most of each kind.
func report(t *testing.T, found []finding, most int) {
	t.Helper()
	said := map[string]int{}
	for _, f := range found {
		if said[f.kind]++; said[f.kind] <= most {
			t.Errorf("%s: %s %s", f.kind, f.sandbox, f.what)
		}
	}
	if len(found) > 0 {
		t.Logf("%d in all: %v", len(found), said)
	}
}

func (n *node) recorded() (found []finding) {
	n.Helper()
	trusted, followed := map[event.Process]bool{}, map[event.Process]bool{}
	n.eachEvent(func(_ time.Time, e event.Event) { // identifies the agent by its key
		switch b := e.Body.(type) {
		case *event.Accept:
			if int(b.Agent.PID) == n.agent.pid() {
				trusted[b.Agent.Process] = true
			}
		case *event.Agent:
			if int(b.PID) == n.agent.pid() {
				trusted[b.Process] = true
			}
		}
	})
	n.eachEvent(func(at time.Time, e event.Event) {
		report := func(kind, format string, args ...any) {
			found = append(found, finding{kind: kind, what: fmt.Sprintf(format, args...), at: at})
		}
		var by event.Process
		switch b := e.Body.(type) {
		case *event.Fork:
			if inTheirs(b.Stack) {
				report(theirFunctions, "%s in %s", b.Parent, b.Stack[0].Function)
			}
			if trusted[b.Parent] {
				trusted[b.Process] = true
			}
			by = b.Process
		case *event.Exec:
			if trusted[b.Parent] || int(b.ParentPID) == n.agent.pid() || int(b.ParentPID) == n.rig.ContainerdPID() {
				trusted[b.Process] = true
			}
			if !trusted[b.Process] {
				report(strangersEvent, "%s ran, a child of %d, call %+v, mentions %v", b.File, b.ParentPID, b.Call, b.Mentions)
			}
			for _, id := range b.Mentions {
				if int(b.ParentPID) == n.agent.pid() && !n.agent.did(int(b.PID), id) {
					report(wrongPod, "%s %v mentions %s", b.File, b.Args, id)
				}
			}
			return
		case *event.Accept:
			// A listener may be known by its key alone.
			if int(b.Agent.PID) != n.api && !trusted[b.Agent.Process] && !followed[b.Agent.Process] {
				followed[b.Agent.Process] = true
				report(serverFollowed, "%s (%d) accepted", b.Agent.Name, b.Agent.PID)
			}
		case *event.Agent:
			if inTheirs(b.Stack) {
				report(theirFunctions, "%s (%d) in %s", b.Name, b.PID, b.Stack[0].Function)
			}
			if int(b.PID) != n.api && !trusted[b.Process] && !followed[b.Process] {
				followed[b.Process] = true
				report(serverFollowed, "%s (%d)", b.Name, b.PID)
			}
		case *event.Exit:
			by = b.Process
		case *event.Request:
			by = b.Process
		case *event.Setting:
			by = b.Process
		case *event.Wait:
			by = b.Process
		case *event.Enter:
			by = b.Process
		case *event.Connect:
			by = b.Process
		case *event.Result:
			by = b.Process
		}
		if by != "" && !trusted[by] {
			report(strangersEvent, "%T of %s", e.Body, by)
		}
	})
	return found
}

func inTheirs(stack []event.Frame) bool {
	return slices.ContainsFunc(stack, func(f event.Frame) bool { return strings.Contains(f.File, theirSources) })
}

func (n *node) eachEvent(take func(time.Time, event.Event)) {
	n.Helper()
	r := harness.Must(record.Open(n.Context(), n.recording))(n.T)
	defer r.Close()
	clock := r.Header().Clock
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		harness.Check(n.T, err)
		take(time.Unix(0, e.Time-clock.Mono+clock.Wall), e)
	}
}

func number(x *spans.Span, key string) int {
	n, _ := strconv.Atoi(x.Attrs[key])
	return n
}

func start(x *spans.Span) time.Time { return time.Unix(0, x.Start()) }

func (n *node) traces() map[string][]*spans.Span {
	n.Helper()
	written := harness.Must(spans.Read(n.spans))(n.T)
	all := map[string][]*spans.Span{}
	for _, x := range written {
		id := x.Attrs["sandbox.id"]
		all[id] = append(all[id], x)
	}
	return all
}

// traced checks that each span is of a known pod, and that each ordinary pod has its whole trace.
func (n *node) traced(pods []pod) (found []finding) {
	n.Helper()
	all := n.traces()
	known := map[string]pod{}
	for _, p := range pods {
		known[p.sandbox] = p
	}
	for id, trace := range all {
		p, is := known[id]
		pids := map[int]bool{n.rig.ContainerdPID(): true, n.agent.pid(): true, p.shim: true}
		for _, x := range trace {
			if pid := number(x, "process.pid"); pid > 0 && pids[number(x, "process.parent_pid")] {
				pids[pid] = true // parents precede children
			}
		}
		for _, x := range trace {
			report := func(kind, format string, args ...any) {
				found = append(found, finding{kind, x.Name + ": " + fmt.Sprintf(format, args...), id, start(x)})
			}
			switch {
			case !is, x.Attrs["k8s.pod.name"] != p.name, x.Attrs["k8s.namespace.name"] != p.namespace:
				report(forged, "of pod %s/%s, sandbox %s", x.Attrs["k8s.namespace.name"], x.Attrs["k8s.pod.name"], id)
			case x.TraceID == forgedTrace || strings.Contains(x.Raw, forgedTrace):
				report(forged, "below a forged parent")
			case p.namespace == ordinary && strings.Contains(x.Raw, mark):
				at := strings.Index(x.Raw, mark)
				report(theirWords, "…%s…", x.Raw[max(0, at-120):min(len(x.Raw), at+60)])
			}
			if strings.Contains(x.Raw, theirSources) {
				report(theirFunctions, "%s in %s", x.Name, x.Attrs["code.function.name"])
			}
			pid, agent := number(x, "process.pid"), number(x, "cniscope.agent_pid")
			switch {
			case agent > 0 && agent != n.agent.pid() && agent != n.api:
				report(serverFollowed, "%s (%d)", x.Attrs["cniscope.agent"], agent)
			case pid > 0 && !pids[pid]:
				report(strangersSpan, "process %d of %d, %s", pid, number(x, "process.parent_pid"), x.Attrs["process.executable.path"])
			case number(x, "process.parent_pid") == n.agent.pid() && x.Attrs["cniscope.attribution"] == "certain" && !n.agent.did(pid, id):
				report(wrongPod, "process %d", pid)
			}
		}
	}
	for _, p := range pods {
		if p.namespace == ordinary {
			found = append(found, whole(p, all[p.sandbox])...)
		}
	}
	return found
}

const (
	ordinary = "shop"
	theirs   = "theirs"
)

func whole(p pod, trace []*spans.Span) (found []finding) {
	report := func(kind, format string, args ...any) {
		f := finding{kind: kind, what: p.name + ": " + fmt.Sprintf(format, args...), sandbox: p.sandbox}
		if len(trace) > 0 {
			f.at = start(trace[0])
		}
		found = append(found, f)
	}
	calls := map[string]int{}
	served := 0
	for _, x := range trace {
		switch x.Attrs["cniscope.kind"] {
		case "call":
			calls[x.Name+" "+x.Attrs["cni.ifname"]]++
			if x.Attrs["cniscope.partial"] == "true" {
				report(partial, "%s: %s", x.Name, x.Attrs["cniscope.partial_reason"])
			}
			const failed = 2
			switch cause := x.Attrs["cniscope.cause"]; {
			case x.Status.Code == failed:
				report(misjudged, "%s failed: %s", x.Name, x.Attrs["cniscope.verdict"])
			case cause != "" && cause != "cpu_starved":
				report(misjudged, "%s %s: %s", x.Name, cause, x.Attrs["cniscope.verdict"])
			}
		case "command":
			if x.Name == "ovs-vsctl" && x.Attrs["cniscope.attribution"] == "certain" && strings.Contains(x.Raw, "certain") {
				served++
			}
		}
	}
	for _, call := range []string{"CNI ADD lo", "CNI ADD eth0", "CNI DEL eth0"} {
		if n := calls[call]; n == 0 || n > 1 && !strings.Contains(call, "DEL") {
			report(untraced, "%d spans %s", n, call)
		}
	}
	if served == 0 && !slices.ContainsFunc(found, func(f finding) bool { return f.kind == partial }) {
		report(untraced, "what the agent did for it is missing")
	}
	return found
}
