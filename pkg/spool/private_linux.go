package spool

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// private refuses a folder in which others may write: they could have it read anything.
func private(root *os.Root) error {
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o022 != 0 {
		return errors.New("others may write there: give it a folder of its own, or chmod 700 it")
	}
	return nil
}

// lock keeps a file to this process. The kernel lets go of it when the process ends.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return errors.New("another cniscope writes to it: give each a folder of its own")
	}
	return err
}
