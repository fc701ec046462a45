package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/private"
)

const nodeLock = "node.lock"

// Take takes the lock of the node in dir, which is made if it is missing; who is what others are told of this
// process. It fails with a HeldError if another cniscope has the lock, and with a *private.Error where others could
// take it. Windows frees it when the process ends, however that ends.
func Take(dir, who string) (release func(), err error) {
	root, err := private.Dir(dir)
	if err != nil {
		return nil, fmt.Errorf("the run folder: %w (set state.dir to a folder that can be written)", err)
	}
	defer root.Close()
	return In(root, nodeLock, who)
}

// In takes the lock that the file name in root stands for. Nobody else may be able to write to root. The file stays
// when the lock is released. who and errors are Take's.
func In(root *os.Root, name, who string) (release func(), err error) {
	path := filepath.Join(root.Name(), name)
	if info, err := root.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("opening the lock: %s is no file", path)
	}
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err := File(f); err != nil {
		defer f.Close()
		if !errors.Is(err, ErrTaken) {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		holder := make([]byte, 256)
		n, _ := f.Read(holder)
		return nil, &HeldError{Holder: strings.TrimSpace(string(holder[:n])), File: path}
	}
	if err := f.Truncate(0); err == nil {
		// Who reads it wants to know; that it cannot be written is no reason to stop.
		_, _ = fmt.Fprintf(f, "pid %d, %s, since %s\n", os.Getpid(), who, time.Now().UTC().Format(time.RFC3339))
	}
	return sync.OnceFunc(func() { _ = f.Close() }), nil
}

// ErrTaken is returned if another process has the lock of a file.
var ErrTaken = errors.New("another process has it")

// File locks an open file until it is closed. What is locked is a byte behind any text: nobody else could read
// one that is.
func File(f *os.File) error {
	behind := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &behind)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrTaken
	}
	return err
}
