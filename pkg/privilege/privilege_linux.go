// Package privilege gives up what a process needed only to start.
package privilege

import (
	"fmt"
	"slices"
	"strings"

	"kernel.org/pub/linux/libs/security/libcap/cap"
)

// kept are what is needed while running, and what for.
var kept = []cap.Value{
	cap.SYS_PTRACE,      // read /proc/PID of other users' processes
	cap.DAC_READ_SEARCH, // read the CNI folder and the options, whoever owns them
	cap.PERFMON,         // read maps with kernel addresses
	cap.BPF,             // look into BPF maps
}

// Drop gives up every capability of the process but the few that are needed while it runs, and
// CAP_NET_ADMIN unless network, on all of its threads. It returns what is left.
func Drop(network bool) (left string, err error) {
	now := cap.GetProc()
	next := cap.NewSet()
	var names []string
	wanted := kept
	if network { // have the process connector go on, should it end
		wanted = append(slices.Clip(kept), cap.NET_ADMIN)
	}
	for _, c := range wanted {
		has, err := now.GetFlag(cap.Permitted, c)
		if err != nil || !has {
			continue
		}
		for _, flag := range []cap.Flag{cap.Permitted, cap.Effective} {
			if err := next.SetFlag(flag, true, c); err != nil {
				return "", fmt.Errorf("keeping %s: %w", c, err)
			}
		}
		names = append(names, c.String())
	}
	if err := next.SetProc(); err != nil {
		return "", fmt.Errorf("dropping capabilities: %w", err)
	}
	return strings.Join(names, ","), nil
}
