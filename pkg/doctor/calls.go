package doctor

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/cniscope/cniscope/pkg/control"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/text"
)

func noCallIsStuck(f *fact.Facts) ([]Finding, error) {
	var found []Finding
	if f.Scope.Err == nil {
		for _, c := range f.Scope.Value.Calls {
			if c.Age < f.Options.Hung {
				continue
			}
			if c.Verdict != "" {
				found = append(found, Problem.finding(fact.Sayf("%s hangs: %s", c.OfPod(), c.Verdict), nil, c.Remedy()))
				continue
			}
			runs := fact.Sayf("%s (process %d) has run for %s", c.Runs, int(c.PID), seconds(c.Running))
			if c.Waits != "" {
				runs += fact.Sayf(" and waits in kernel function %s (state %s)", c.Waits, c.State)
			}
			if c.Asks != "" {
				runs += fact.Sayf("; it has waited for %s at %s for %s", cmp.Or(c.Agent, "an agent"), c.Asks, seconds(c.Asking))
			}
			if c.Polls != "" {
				runs += fact.Sayf("; it polls for %s", c.Polls)
			}
			lock := lockOf(f, int(c.PID))
			found = append(found, Problem.finding(
				fact.Sayf("CNI %s %s of pod %s/%s has been in progress for %s", c.Command, c.IfName, c.Namespace, c.Pod,
					seconds(c.Age)),
				append([]string{fact.Sayf("plugin: %s, sandbox: %s", c.Plugin, c.ContainerID), runs}, lock...),
				orLocks(lock, fact.Sayf("find what process %d waits for: cat /proc/%[1]d/stack; cniscope ps shows whether it "+
					"waits for an agent", int(c.PID))),
				fact.Sayf("if nothing else helps: kill %d; the runtime then retries", int(c.PID))))
		}
		return found, nil
	}
	if f.Processes.Err != nil {
		return nil, f.Processes.Err
	}
	for _, p := range f.Processes.Value {
		if !p.Plugin || !p.HostNet || p.Command == "" || f.Now.Sub(p.Start) < f.Options.Hung {
			continue
		}
		lock := lockOf(f, p.PID)
		found = append(found, Problem.finding(
			fact.Sayf("the CNI plugin %s has been running for %s", p.Name, seconds(f.Now.Sub(p.Start))),
			append([]string{fact.Sayf("process %d is %s with CNI_COMMAND=%s", p.PID, p.File, p.Command)}, lock...),
			orLocks(lock, fact.Sayf("find what the plugin waits for: cat /proc/%d/wchan /proc/%[1]d/stack; a running cniscope "+
				"names the pod", p.PID))))
	}
	if len(found) == 0 && !errors.Is(f.Scope.Err, control.ErrNotRunning) {
		return nil, f.Scope.Err
	}
	return found, nil
}

func lockOf(f *fact.Facts, pid int) []string {
	for _, l := range f.Locks.Value {
		if slices.Contains(l.WaiterPIDs, pid) {
			return []string{fact.Sayf("process %d waits for %s, which %s holds", pid, l.File, l.Holder)}
		}
	}
	return nil
}

func orLocks(lock []string, remedy string) string {
	if lock != nil {
		return "see locks"
	}
	return remedy
}

// lately bounds the age of failures that count; kubelet retries a pod within seconds.
const lately = 10 * time.Minute

func callsSucceed(f *fact.Facts) ([]Finding, error) {
	if errors.Is(f.Scope.Err, control.ErrNotRunning) {
		return nil, notApplicable("cniscope does not run here, so doctor does not know which calls failed")
	}
	if f.Scope.Err != nil {
		return nil, f.Scope.Err
	}
	failed := map[string][]control.Failure{}
	var keys []string
	for _, x := range f.Scope.Value.Recent.Failures {
		if f.Now.Sub(x.Time) > lately {
			continue
		}
		if failed[x.Key()] == nil {
			keys = append(keys, x.Key())
		}
		failed[x.Key()] = append(failed[x.Key()], x)
	}
	var found []Finding
	for _, key := range keys {
		found = append(found, failedCalls(failed[key], f.Scope.Value.Recent.Worked[key]))
	}
	return found, nil
}

func failedCalls(failed []control.Failure, worked time.Time) Finding {
	last := failed[len(failed)-1]
	calls := text.Count(len(failed), "CNI "+last.Command)
	if last.Network != "" {
		calls = fact.Sayf("%s of network \"%s\"", calls, last.Network)
	}
	finding := Warning.finding(
		fact.Sayf("%s failed in the last %d minutes, and none has succeeded since", calls, int(lately.Minutes())), nil,
		"read their verdicts, and fix the causes: journalctl -u cniscope -e has one line for each call")
	if worked.After(last.Time) {
		finding.Level = Note
		finding.Summary = fact.Sayf("%s failed in the last %d minutes; a later one succeeded", calls, int(lately.Minutes()))
	}
	if last.Remedy != "" {
		finding.Remedy = []string{fact.Clean(last.Remedy)}
	}
	for _, x := range slices.Backward(failed[max(0, len(failed)-fact.Listed):]) {
		finding.Evidence = append(finding.Evidence, fact.Sayf("%s, pod %s/%s, plugin %s, after %s: %s", stamp(x.Time),
			x.Namespace, x.Pod, x.Plugin, x.Took.Round(time.Millisecond).String(), x.Says))
	}
	return finding
}

func nobodyWaitsForALock(f *fact.Facts) ([]Finding, error) {
	var found []Finding
	for _, l := range f.Locks.Value {
		if len(l.Waiters) == 0 {
			continue
		}
		found = append(found, Warning.finding(
			fact.Sayf("%s holds %s, and other processes wait for it", l.Holder, l.File),
			[]string{
				fact.Sayf("/proc/locks has listed the same holder and waiters for at least %s", l.Since.Round(time.Millisecond)),
				"waiting: " + fact.List(l.Waiters),
			},
			fact.Sayf("find what the holder does: cat /proc/%d/wchan /proc/%[1]d/stack; if it hangs: kill %[1]d", l.PID)))
	}
	return found, nil
}
