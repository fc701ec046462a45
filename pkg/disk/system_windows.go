package disk

import (
	"errors"
	"os"

	held "github.com/cniscope/cniscope/pkg/lock"
)

const nonblock = 0

// lock keeps a file to this process. Windows lets go of it when the process ends.
func lock(f *os.File) error {
	err := held.File(f)
	if errors.Is(err, held.ErrTaken) {
		return ErrLocked
	}
	return err
}

// unsupported: the handle of a folder cannot be flushed (FlushFileBuffers wants GENERIC_WRITE); NTFS logs names.
func unsupported(err error) bool { return err != nil }

func attributes(string) (map[string][]byte, error) { return nil, nil }

func setAttribute(*os.File, string, []byte) error { return nil }
