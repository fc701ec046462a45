package judge

import (
	"fmt"
	"time"
)

// many is how many commands a call runs at least that has many: an ordinary ADD of bridge and portmap has 36.
const many = 40

// manyCommands: none of them is slow, but there are so many.
func manyCommands(e *evidence) *finding {
	var sum, candidate, longest time.Duration
	n, most := 0, (*program)(nil)
	for _, p := range e.programs() {
		sum += p.time
		candidate += p.candidate
		n += p.runs
		longest = max(longest, p.longest)
		if most == nil || p.runs > most.runs {
			most = p
		}
	}
	if n < many || longest > sum/4 {
		return nil
	}
	return &finding{Verdict: Verdict{
		Cause: CauseCommands, Says: fmt.Sprintf("in %d commands, %d of them %s", n, most.runs, most.name),
		Remedy: atOnce(most.name), Report: "containernetworking/plugins#510",
	}, time: sum, kind: Commands, candidate: candidate > sum/2}
}

// atOnce is how to do without so many runs of a program.
func atOnce(command string) string {
	if n := native(command); n != "" {
		return "replace it: " + n
	}
	return "do in one run what takes so many now (as iptables-restore, ip -batch or nft -f do), or leave out what the plugin's configuration does not need"
}
