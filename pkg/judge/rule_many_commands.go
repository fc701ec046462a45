package judge

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/text"
)

// many is the least number of commands: an ordinary ADD of bridge and portmap runs 36.
const many = 40

// manyCommands: no command is slow, but there are many. If few runs of one program dominate, it is slowCommand.
func manyCommands(e *evidence) *finding {
	var sum, candidate, longest time.Duration
	n := 0
	all := e.programs()
	for _, p := range all {
		sum += p.time
		if p.candidate {
			candidate += p.time
		}
		n += p.runs
		longest = max(longest, p.longest)
	}
	if n < many || longest > sum/4 {
		return nil
	}
	most := all[0] // the longest in sum
	says := fmt.Sprintf("%d commands ran, %d of them %s", n, most.runs, most.name)
	if most.runs == n {
		says = most.String()
	} else if most.runs < n/2 {
		if most.time > sum/2 {
			return nil
		}
		says = fmt.Sprintf("%d commands ran, %s %d times for %s", n, most.name, most.runs, text.Round(most.time))
	}
	return &finding{Verdict: Verdict{
		Cause: CauseCommands, Says: says, Remedy: atOnce(most.name) + most.longTable(), Report: "containernetworking/plugins#510",
	}, time: sum, kind: Commands, candidate: candidate > sum/2}
}

func atOnce(command string) string {
	if n := native(command); n != "" {
		return fmt.Sprintf("replace the runs of %s with %s", command, n)
	}
	return "replace the runs with batches (iptables-restore, ip -batch, nft -f), or switch off features of the plugin that the node does not need"
}
