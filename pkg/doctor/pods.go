package doctor

import (
	"strings"
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
		what := "writes the CNI directories"
		switch {
		case c.Proxy:
			what = "is kube-proxy"
		case len(c.Mounts) == 0:
			what = "belongs to " + c.Owner
		}
		finding := Finding{
			Level:    Problem,
			Summary:  fact.Sayf("container %s of pod %s/%s, which %s, %s", c.Name, c.Namespace, c.Pod, what, wrong),
			Evidence: []string{evidenceOf(c)},
			Remedy:   []string{fact.Sayf("kubectl -n %s logs %s -c %s --previous", c.Namespace, c.Pod, c.Name)},
		}
		finding.Evidence = append(finding.Evidence, lastLine(c.LastLine)...)
		if known := judge.KnownRemedy(c.Name, c.LastLine); known != "" {
			finding.Remedy = append([]string{known}, finding.Remedy...)
		}
		if len(c.Mounts) > 0 {
			finding.Evidence = append(finding.Evidence, "it mounts "+fact.List(c.Mounts))
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
		return fact.Sayf("runs again after %d restarts, since %s", c.Restarts, now.Sub(c.Started).Round(time.Second).String())
	}
	return ""
}

func evidenceOf(c fact.Container) string {
	parts := []string{"CRI: " + c.State}
	if c.State == "exited" {
		parts = append(parts, fact.Sayf("exit code %d", int(c.ExitCode)))
		if c.Reason != "" {
			parts = append(parts, "reason "+fact.Clean(c.Reason))
		}
		parts = append(parts, "at "+stamp(c.Finished))
	} else if !c.Started.IsZero() {
		parts = append(parts, "since "+stamp(c.Started))
	}
	return strings.Join(append(parts, text.Count(c.Restarts, "restart")), ", ")
}
