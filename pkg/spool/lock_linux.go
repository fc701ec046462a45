package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps a file to this process. The kernel lets go of it when the process ends.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrHeld
	}
	return err
}
