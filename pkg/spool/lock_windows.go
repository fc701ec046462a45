package spool

import (
	"errors"
	"os"

	held "github.com/cniscope/cniscope/pkg/lock"
)

// lock keeps a file to this process. Windows lets go of it when the process ends.
func lock(f *os.File) error {
	err := held.File(f)
	if errors.Is(err, held.ErrTaken) {
		return ErrHeld
	}
	return err
}
