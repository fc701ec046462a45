package gather

import (
	"fmt"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// anyID is an id of a container anywhere in the name of a cgroup: "libpod-ID.scope", "cri-containerd-ID.scope".
var anyID = regexp.MustCompile(`[0-9a-f]{64}`)

// bearers adds the ids of the containers in which processes run, by their cgroups. In a container that has a PID
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
		for _, id := range anyID.FindAllString(groupsOf(pid), -1) {
			alive[id] = true
		}
	}
	return nil
}

// bootTime is when the node was started, exact to its clock's corrections since.
func bootTime() time.Time {
	var since unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &since) != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(since.Nano()))
}
