package judge

import (
	"fmt"
	"strings"

	"github.com/cniscope/cniscope/pkg/timeline"
)

// failed: what a plugin says went wrong is the verdict, unless it was killed because it
// took too long; then what it waited for is.
func failed(m *matter) *Verdict {
	switch {
	case m.Failure == "" || m.Failed != nil && m.Failed.Signal == "SIGKILL":
		return nil
	case m.Failed == nil:
		return &Verdict{
			Cause: CauseMissing, Says: m.Failure,
			Remedy: "check that the plugin's binary is in the runtime's CNI bin folder and executable: cniscope doctor",
			Report: "containerd/containerd#8419",
		}
	}
	if busy(m.Failed) {
		return &busyAgent(m).Verdict
	}
	if f := refusedAgent(m); f != nil {
		return &Verdict{Cause: f.Cause, Says: m.Failure + "; " + f.Says, Remedy: f.Remedy, Report: f.Report}
	}
	return &Verdict{Cause: CauseFailed, Says: m.Failure}
}

// busy tells whether a plugin was turned away because its agent had too much to do.
func busy(run *timeline.Image) bool {
	r := result(run)
	if r == nil {
		return false
	}
	said := strings.ToLower(r.Message)
	for _, sign := range []string{"429", "too many requests", "rate limit", "resourceexhausted", "resource exhausted"} {
		if strings.Contains(said, sign) {
			return true
		}
	}
	return false
}

// busyAgent: the agent behind a plugin answered that it has too much to do.
func busyAgent(m *matter) *finding {
	if m.Failed == nil || !busy(m.Failed) {
		return nil
	}
	return &finding{Verdict{
		Cause:  CauseBusy,
		Says:   fmt.Sprintf("the agent behind %s turned it away: %s", m.Failed.Run.Plugin, m.Failure),
		Remedy: "fewer pods at once, or a higher API rate limit of the agent (Cilium: --api-rate-limit)",
		Report: "cilium/cilium#22023",
	}, m.Took}
}
