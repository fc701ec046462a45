package judge

import (
	"fmt"
	"strings"
)

// missing: the chain stopped early without a failure: the next plugin was not found, or the runtime gave up.
func missing(e *evidence) *Verdict {
	first, rest := e.call.NeverRun[0], e.call.NeverRun[1:]
	says := fmt.Sprintf("plugin %q never ran (missing binary?)", first)
	if len(rest) > 0 {
		says += ", so neither did " + strings.Join(rest, ", ")
	}
	return &Verdict{
		Cause: CauseMissing, Says: says,
		Remedy: fmt.Sprintf("put %s into the runtime's CNI bin folder, executable: cniscope doctor names the folder", first),
		Report: "containerd/containerd#8419",
	}
}
