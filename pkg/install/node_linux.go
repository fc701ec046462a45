package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/anchor"
	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/private"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// installLock is in a directory of root's, so that no other user can hold it.
const installLock = "cniscope-install.lock"

func ownerOf(info fs.FileInfo) (uid, gid int) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid), int(s.Gid)
	}
	return 0, 0
}

// lockTree allows one installation at a time. A live node's lock is in /run, since / may be read-only, an image's in
// the image.
func lockTree(path string, live bool) (release func(), err error) {
	open, dir := os.OpenRoot, path
	if live {
		open, dir = private.Dir, "/run"
	}
	root, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	defer root.Close()
	release, err = lock.In(root, installLock, "cniscope install")
	if held := (*lock.HeldError)(nil); errors.As(err, &held) {
		return nil, fmt.Errorf("another cniscope is at work on %s (%s): try again when it is done", path, held.Holder)
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return release, nil
}

// unfit explains why a directory is read-only or, on a live node, does not allow execution.
func unfit(dir string, live bool) error {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	switch {
	case err == nil && fs.Flags&unix.ST_RDONLY != 0:
		return unix.EROFS
	case err == nil && live && fs.Flags&unix.ST_NOEXEC != 0:
		return errors.New("it is mounted noexec")
	}
	return nil
}

// running returns the process that listens on a socket, and its start time.
func running(ctx context.Context, address string) (pid int, started time.Time, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return 0, started, err
	}
	defer conn.Close()
	pid = anchor.Peer(conn)
	started, err = procfs.Started(pid)
	return pid, started, err
}

// configOf returns the configuration path in containerd's command line, if any.
func configOf(pid int) string {
	line, err := procfs.NewMemory().Arguments(pid)
	if err != nil {
		return ""
	}
	for i, arg := range line {
		name, value, inOne := strings.Cut(arg, "=")
		if name != "--config" && name != "-config" && name != "-c" {
			continue
		}
		if !inOne && i+1 < len(line) {
			value = line[i+1]
		}
		if filepath.IsAbs(value) {
			return value
		}
	}
	return ""
}

// newer reports whether containerd started before the file was written.
func (t tree) newer(ctx context.Context, path, address string) bool {
	file, err := t.file(path)
	if err != nil {
		return false
	}
	info, err := t.disk.Stat(file)
	if err != nil {
		return false
	}
	_, started, err := running(ctx, address)
	return err == nil && info.ModTime().After(started.Add(procfs.Tick))
}
