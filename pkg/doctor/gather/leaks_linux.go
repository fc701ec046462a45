package gather

import (
	"fmt"
	"time"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// bearers adds containers with running processes. It fails in a PID namespace of its own, which hides other containers.
func bearers(alive map[string]bool) error {
	running, err := procfs.Containers()
	if err != nil {
		return err
	}
	if sees := theNode(contained()); !sees.sure {
		return fmt.Errorf("cannot list the running containers: %w", errUnseen)
	}
	for id := range running {
		alive[id] = true
	}
	return nil
}

// bootTime is exact except for clock corrections since boot.
func bootTime() time.Time { return time.Now().Add(-time.Duration(clock.Boot())) }
