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

// In locks a file in root, which must be private (private.Dir), and removes it on release. who and errors as for
// Take.
func In(root *os.Root, name, who string) (release func(), err error) {
	path := filepath.Join(root.Name(), name)
	for {
		f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, fmt.Errorf("cannot open the lock: %w", err)
		}
		current, err := lock(root, f, name)
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		if !current { // just removed by its holder
			_ = f.Close()
			continue
		}
		sign(f, who)
		return sync.OnceFunc(func() {
			_ = os.Remove(path) // while locked: later it may be another's
			_ = f.Close()
		}), nil
	}
}

func lock(root *os.Root, f *os.File, name string) (current bool, err error) {
	err = File(f)
	if errors.Is(err, ErrTaken) {
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

// File locks until the close.
func File(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrTaken
	}
	return err
}
