package privilege

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Hide protects this process's memory, environment, files and /proc/PID/root from the user's other processes, until
// it executes a program.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot hide this process from others of its user: %w", err)
	}
	return nil
}
