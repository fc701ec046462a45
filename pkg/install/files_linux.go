package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownerOf(info fs.FileInfo) owner {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return owner{int(s.Uid), int(s.Gid)}
	}
	return owner{}
}

// lock keeps a tree to one installation at a time. The kernel frees it with the process.
func (t tree) lock() (release func(), err error) {
	f, err := os.Open(t.root)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("another cniscope is at work on %s: try again when it is done", t.root)
	}
	return nil, fmt.Errorf("locking %s: %w", t.root, err)
}

// sync brings a folder's names to the disk.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func isNotEmpty(err error) bool { return errors.Is(err, unix.ENOTEMPTY) }
