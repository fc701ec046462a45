package privilege

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Hide keeps other processes of the user from reading the calling process's memory, environment, open files and
// /proc/PID/root, until it executes another program.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot hide this process from others of its user: %w", err)
	}
	return nil
}
