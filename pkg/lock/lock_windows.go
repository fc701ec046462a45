package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/windows"
)

// In locks a file in root, which must be private, and leaves it on release. who and errors as for Take.
func In(root *os.Root, name, who string) (release func(), err error) {
	path := filepath.Join(root.Name(), name)
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("cannot open the lock: %s is no file", path)
	}
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the lock: %w", err)
	}
	if err := File(f); err != nil {
		defer f.Close()
		if !errors.Is(err, ErrTaken) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		return nil, held(f, path)
	}
	sign(f, who)
	return sync.OnceFunc(func() { _ = f.Close() }), nil
}

// File locks until the close, a byte behind the text: locked bytes are unreadable.
func File(f *os.File) error {
	behind := windows.Overlapped{OffsetHigh: 1 << 30}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &behind)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrTaken
	}
	return err
}
