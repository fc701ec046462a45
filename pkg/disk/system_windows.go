package disk

import (
	"errors"
	"os"

	held "github.com/cniscope/cniscope/pkg/lock"
)

const nonblock = 0

func lock(f *os.File) error {
	err := held.File(f)
	if errors.Is(err, held.ErrTaken) {
		return ErrLocked
	}
	return err
}

// unsupported is always true: directories cannot be flushed (FlushFileBuffers needs GENERIC_WRITE), and NTFS logs
// names.
func unsupported(err error) bool { return err != nil }

func attributes(string) (map[string][]byte, error) { return nil, nil }

func setAttribute(*os.File, string, []byte) error { return nil }
