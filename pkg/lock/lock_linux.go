package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/private"
)

// In acquires the lock of the file name in root, and removes the file on release. root must be private (private.Dir).
// who and errors are as for Take.
func In(root *os.Root, name, who string) (release func(), err error) {
	path := filepath.Join(root.Name(), name)
	for {
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening the lock: %w", err)
		}
		current, err := lock(root, f, name)
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		if !current { // the holder removed the file just now
			_ = f.Close()
			continue
		}
		sign(f, who)
		return sync.OnceFunc(func() {
			_ = os.Remove(path) // while locked: afterwards it may be another process's
			_ = f.Close()
		}), nil
	}
}

// lock reports whether the locked file still has that name.
func lock(root *os.Root, f *os.File, name string) (current bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, held(f, f.Name())
	}
	if err != nil {
		return false, fmt.Errorf("locking %s: %w", f.Name(), err)
	}
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := root.Lstat(name)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(mine, now) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, private.File(f)
}
