package gather

import (
	"fmt"
	"regexp"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// anyID is an id of a container anywhere in the name of a cgroup: "libpod-ID.scope", "cri-containerd-ID.scope".
var anyID = regexp.MustCompile(`[0-9a-f]{64}`)

// bearers adds the ids of the containers in which processes run, by their cgroups. Zombies run nothing: a runtime
// without a first process that reaps leaves them in the cgroup of a sandbox that is gone. In a container that has a PID
// namespace of its own nobody else's are seen, and it says so.
func bearers(alive map[string]bool) error {
	pids, err := procfs.All()
	if err != nil {
		return fmt.Errorf("listing the processes: %w", err)
	}
	if sees := theNode(contained()); !sees.sure {
		return fmt.Errorf("which containers run: %w", errUnseen)
	}
	for _, pid := range pids {
		if ids := anyID.FindAllString(groupsOf(pid), -1); len(ids) > 0 && !procfs.Ended(pid) {
			for _, id := range ids {
				alive[id] = true
			}
		}
	}
	return nil
}

// bootTime is when the node was started, exact to its clock's corrections since.
func bootTime() time.Time { return time.Now().Add(-time.Duration(clock.Boot())) }
