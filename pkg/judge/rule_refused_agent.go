package judge

import (
	"fmt"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// refusedAgent: nobody answers where the plugin calls, and it goes on trying.
func refusedAgent(e *evidence) *finding {
	time, most, n := e.waited(isRefused)
	if n == 0 {
		return nil
	}
	return &finding{Verdict: refusal(most.connection()), time: time, kind: Agents, candidate: most.candidate}
}

// isRefused reports whether it was an attempt to connect, which nobody answered.
func isRefused(w *wait) bool {
	c := w.connection()
	return c != nil && c.Error != "" && c.Exchange == nil
}

func refusal(c *timeline.Connection) Verdict {
	often := "once"
	if c.Tries > 1 {
		often = fmt.Sprintf("%d times", c.Tries)
	}
	return Verdict{
		Cause:  CauseRefused,
		Says:   fmt.Sprintf("calling %s in vain, %s: %s", c.Address, often, c.Error),
		Remedy: unanswered(c.Error) + "; or correct the address in the plugin's configuration",
		Report: "containerd/containerd#4666",
	}
}

// unanswered says where to look, given the errno of a failed connection.
func unanswered(errno string) string {
	switch errno {
	case "ETIMEDOUT":
		return "nothing comes back from there: look at whether that machine runs, at packet filters and routes on the way"
	case "EHOSTUNREACH", "ENETUNREACH":
		return "there is no way from this node: look at its routes, and at whether that machine runs"
	}
	return "the agent does not run, or listens elsewhere: get the agent's pod to run (kubectl logs --previous says why it ended)"
}

// refusedLast returns a failed run's unanswered connection if it was the last: else the run did without.
func refusedLast(run *timeline.Image) (last *timeline.Connection) {
	end := int64(0)
	for f, c := range timeline.Each[*timeline.Connection](run.Facts) {
		// Every program of the C library asks for a cache of names first (nscd(8)).
		if !strings.Contains(c.Address, "/nscd/") && (last == nil || f.When.End >= end) {
			last, end = c, f.When.End
		}
	}
	if last == nil || last.Error == "" || time.Duration(run.End-end) > aftermath {
		return nil
	}
	return last
}

// aftermath bounds how long a plugin undoes its work after the unanswered connection that made it fail.
const aftermath = 2 * time.Second
