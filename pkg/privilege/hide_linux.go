package privilege

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Hide keeps processes of the same user from reading this process's memory, environment and open files, and from
// reaching files through /proc/PID/root. It holds until the process executes another program. Signals still arrive.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot hide this process from others of its user: %w", err)
	}
	return nil
}
