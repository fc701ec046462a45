package doctor

import (
	"time"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/judge"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	// restartsMany within restartsLately mean that a container does not come up: kubelet's back-off reaches five minutes
	// at the sixth restart.
	restartsMany   = 3
	restartsLately = 10 * time.Minute
	startsIn       = 10 * time.Second // after a container's creation
)

func networkPodsRun(f *fact.Facts) ([]Finding, error) {
	var found []Finding
	for _, c := range f.Containers.Value {
		if !c.SandboxReady || !c.Writes() && !c.Proxy {
			continue
		}
		wrong := troubleOf(c, f.Now)
		if wrong == "" {
			continue
		}
		finding := Problem.finding(c.String()+" "+wrong,
			append([]string{"CRI state: " + evidenceOf(c)}, lastLine(c.LastLine)...),
			fact.Sayf("kubectl -n %s logs %s -c %s --previous", c.Namespace, c.Pod, c.Name))
		if known := judge.KnownRemedy(c.Name, c.LastLine); known != "" {
			finding.Remedy = append([]string{known}, finding.Remedy...)
		}
		switch {
		case c.Proxy:
			finding.Evidence = append(finding.Evidence, "this container is kube-proxy")
		case len(c.Mounts) > 0:
			finding.Evidence = append(finding.Evidence, "this container writes CNI directories: it mounts "+fact.List(c.Mounts))
		default:
			finding.Evidence = append(finding.Evidence, "this container belongs to "+c.Owner)
		}
		found = append(found, finding)
	}
	return found, nil
}

func troubleOf(c fact.Container, now time.Time) string {
	switch c.State {
	case "exited":
		if c.ExitCode == 0 {
			return "" // an installer
		}
		if c.Restarts > 0 {
			return fact.Sayf("fails again and again: exit code %d, %s", int(c.ExitCode), text.Count(c.Restarts, "restart"))
		}
		return fact.Sayf("exited with %d", int(c.ExitCode))
	case "created", "unknown":
		if now.Sub(c.Created) > startsIn {
			return "has not started"
		}
		return ""
	}
	if c.Restarts >= restartsMany && now.Sub(c.Started) < restartsLately {
		return fact.Sayf("has restarted %d times, the last time %s ago", c.Restarts, seconds(now.Sub(c.Started)))
	}
	return ""
}

func evidenceOf(c fact.Container) string {
	said := c.State
	if c.State == "exited" {
		said += fact.Sayf(" with code %d", int(c.ExitCode))
		if c.Reason != "" && c.Reason != "Error" {
			said += fact.Sayf(" (%s)", c.Reason)
		}
		said += " at " + stamp(c.Finished)
	} else if !c.Started.IsZero() {
		said += " since " + stamp(c.Started)
	}
	return said + ", " + text.Count(c.Restarts, "restart")
}
