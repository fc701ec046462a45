package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/private"
)

// nodeLock is a file that nobody else can open, and so nobody else can lock.
const nodeLock = "node.lock"

// Take takes the lock of the node in dir, which is made if it is missing; who is what others are
// told of this process, as "in a pod". It fails with a HeldError if another cniscope has the lock,
// and with a *private.Error where others could take it. The kernel frees it when the process ends,
// however that ends.
func Take(dir, who string) (release func(), err error) {
	root, err := private.Dir(dir)
	if err != nil {
		return nil, fmt.Errorf("the run folder: %w (set state.dir to a folder that can be written)", err)
	}
	defer root.Close()
	return In(root, nodeLock, who)
}

// In takes the lock that the file name in root stands for, and removes the file on release. Nobody
// else may be able to write to root (private.Dir): they could take it, too. who and errors are Take's.
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
		if !current { // its holder removed it just now
			_ = f.Close()
			continue
		}
		if err := f.Truncate(0); err == nil {
			// Who reads it wants to know; that it cannot be written is no reason to stop.
			_, _ = fmt.Fprintf(f, "pid %d, %s, since %s\n", os.Getpid(), who, time.Now().UTC().Format(time.RFC3339))
		}
		return sync.OnceFunc(func() {
			_ = os.Remove(path) // before it is free: afterwards it may be another's
			_ = f.Close()
		}), nil
	}
}

// lock locks an open file, and tells whether it still is the one of that name.
func lock(root *os.Root, f *os.File, name string) (current bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		holder := make([]byte, 256)
		n, _ := f.Read(holder)
		return false, &HeldError{Holder: strings.TrimSpace(string(holder[:n])), File: f.Name()}
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
