package lock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Take takes the lock in dir, which is made if it is missing. It fails with a HeldError
// if somebody else has it. The kernel frees it when the process ends, however that
// ends; nothing is ever left to clean up.
func Take(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the run folder: %w; set [run] dir to a folder that can be written", err)
	}
	file := filepath.Join(dir, "lock")
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w; set [run] dir to a folder that can be written", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		defer f.Close()
		holder := make([]byte, 256)
		n, _ := f.Read(holder)
		return nil, &HeldError{Holder: strings.TrimSpace(string(holder[:n])), File: file}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("locking %s: %w", file, err)
	}
	if err := f.Truncate(0); err == nil {
		// Who reads it wants to know; that it cannot be written is no reason to stop.
		_, _ = fmt.Fprintf(f, "pid %d, since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	}
	return func() { _ = f.Close() }, nil
}
