package doctor

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

var ofLinux = []string{
	"cni-agent", "network-pods", "service-proxies", "service-rules", "leftovers", "overlap",
	"leaked-networks", "leaked-leases", "locks", "nri", "kernel", "clock", "dns",
}

func checksOf(f *fact.Facts) []check {
	all := checks()
	if !f.OnWindows {
		return all
	}
	all = slices.DeleteFunc(all, func(c check) bool { return slices.Contains(ofLinux, c.name) })
	return append(all,
		check{"hns", hnsRuns, func(f *fact.Facts) error { return f.HNS.Err }},
		check{"agent-pipe", agentsHavePipes, func(f *fact.Facts) error { return cmp.Or(f.Folder.Err, f.Pipes.Err) }},
		check{"self-test", processesAreSeen, func(f *fact.Facts) error { return f.Trial.Err }})
}

func hnsRuns(f *fact.Facts) ([]Finding, error) {
	switch state := f.HNS.Value; state {
	case "running":
		return nil, nil
	case "":
		return []Finding{Problem.finding("there is no Host Network Service: no pod gets a network",
			[]string{"the service manager knows no service hns"},
			"it comes with the feature Containers: Install-WindowsFeature Containers, and a restart")}, nil
	default:
		return []Finding{Problem.finding(fact.Sayf("the Host Network Service does not run: it is %s", state),
			[]string{fact.Sayf("service hns: %s", state)},
			"Start-Service hns; its errors are in the event log, Microsoft-Windows-Host-Network-Service")}, nil
	}
}

var pipes = map[string]string{"antrea": "C:varrunantreacni.sock"}

// agentsHavePipes does not connect, which would be a call.
func agentsHavePipes(f *fact.Facts) ([]Finding, error) {
	var found []Finding
	asked := false
	for _, n := range f.Folder.Value.Networks {
		for _, plugin := range n.Plugins {
			pipe, known := pipes[strings.TrimSuffix(strings.ToLower(plugin.Type), ".exe")]
			asked = asked || known
			if known && !slices.ContainsFunc(f.Pipes.Value, func(p string) bool { return strings.EqualFold(p, pipe) }) {
				found = append(found, Problem.finding(
					fact.Sayf("the agent that plugin %s of network \"%s\" asks has no pipe: every ADD fails", plugin.Type, n.Name),
					[]string{`there is no \\.\pipe\` + pipe},
					"start the agent; the log of its pod or service says why it exited"))
			}
		}
	}
	if !asked {
		return nil, notApplicable("no network is configured that has a plugin whose agent's pipe is known")
	}
	return found, nil
}

// lateAfter is four times the delay of event tracing. By then a plugin's command may have exited.
const lateAfter = 100 * time.Millisecond

// processesAreSeen checks how a started process is observed.
func processesAreSeen(f *fact.Facts) ([]Finding, error) {
	t := f.Trial.Value
	how := fact.Sayf("a started process was reported within %s, by %s",
		max(t.Took.Round(time.Millisecond), time.Millisecond), t.Source)
	var found []Finding
	if t.Unread != "" {
		found = append(found, Problem.finding(
			"the environment of a process cannot be read: calls have no pod, no command and no container",
			[]string{how, fact.Sayf("its environment: %s", t.Unread)},
			"run it as SYSTEM or as an administrator; if a security product blocks reads of other processes' memory, exempt "+
				"cniscope.exe"))
	}
	if t.Took > lateAfter {
		found = append(found, Warning.finding(
			fact.Sayf("processes are reported late: plugins and commands that live less than %s are seen without their "+
				"environment", t.Took.Round(time.Millisecond)),
			[]string{how}, "look at what else the node does (CPU), and run it again"))
	}
	if t.Why != "" {
		found = append(found, Warning.finding(
			"Windows refuses event tracing, so cniscope takes snapshots of the process table and misses commands that are "+
				"shorter than the time between two snapshots",
			[]string{fact.Clean(t.Why), how},
			"be an administrator; logman query -ets lists the sessions: 64 are the most (8 of them system loggers)"))
	}
	if len(found) == 0 {
		found = append(found, Note.finding(how+"; its environment was read", []string{}, []string{}...))
	}
	return found, nil
}
