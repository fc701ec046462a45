package gather

import (
	"fmt"
	"regexp"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// anyID matches ids, as in "libpod-ID.scope" and "cri-containerd-ID.scope".
var anyID = regexp.MustCompile(`[0-9a-f]{64}`)

// bearers adds containers with running processes, by cgroup. Zombies do not count: a runtime that does not reap leaves
// them. It fails in a PID namespace of its own, which hides other containers.
func bearers(alive map[string]bool) error {
	pids, err := procfs.All()
	if err != nil {
		return fmt.Errorf("listing the processes: %w", err)
	}
	if sees := theNode(contained()); !sees.sure {
		return fmt.Errorf("which containers run: %w", errUnseen)
	}
	for _, pid := range pids {
		if ids := anyID.FindAllString(procfs.Groups(pid), -1); len(ids) > 0 && !procfs.Ended(pid) {
			for _, id := range ids {
				alive[id] = true
			}
		}
	}
	return nil
}

// bootTime is exact except for clock corrections since boot.
func bootTime() time.Time { return time.Now().Add(-time.Duration(clock.Boot())) }
