package builds

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// identity tells a file from any other one, and from itself after a change.
type identity struct {
	device, inode     uint64
	size              int64
	modified, changed unix.Timespec
}

// identityOf returns that of an open file.
func identityOf(info fs.FileInfo) identity {
	s, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return identity{}
	}
	return identity{s.Dev, s.Ino, s.Size, unix.Timespec(s.Mtim), unix.Timespec(s.Ctim)}
}

// runsStill reports whether the process runs the very file that was looked at before, which takes one system call
// where to open it takes twenty. It need not be the process that was meant: who else has that number runs that file, too.
// Of a script it is never so: what runs is its interpreter.
func (l look) runsStill(before file) bool {
	var s unix.Stat_t
	if before.build == "" || before.id == (identity{}) || unix.Stat(procfs.Runs(l.pid), &s) != nil {
		return false
	}
	return before.id == identity{s.Dev, s.Ino, s.Size, s.Mtim, s.Ctim}
}

// open opens the file that a process runs: what it runs, unless that is an interpreter; the path as the process sees
// it; and if the process is gone, as the node's first process does.
func (l look) open() (*os.File, error) {
	f, err := l.running()
	if err != nil {
		f, err = seenBy(1, l.name)
	}
	return f, err
}

// running opens the file by its process. Whose pid it is may have changed meanwhile, and that one's file be anything.
func (l look) running() (f *os.File, err error) {
	if !l.runs() {
		return nil, fs.ErrNotExist
	}
	err = fs.ErrNotExist
	if runs, linkErr := procfs.Executable(l.pid); linkErr == nil && path.Base(runs) == path.Base(l.name) {
		f, err = regular(procfs.Runs(l.pid), 0)
	}
	if err != nil {
		f, err = seenBy(l.pid, l.name)
	}
	if err == nil && !l.runs() {
		f.Close()
		return nil, fs.ErrNotExist
	}
	return f, err
}

// runs reports whether the pid is still that of the process.
func (l look) runs() bool {
	stat, err := procfs.StatOf(l.pid)
	return err == nil && stat.BeganAt(l.started+clock.Suspended())
}

// seenBy opens a file as a process sees it.
func seenBy(pid int, name string) (*os.File, error) {
	at, err := securejoin.SecureJoin(procfs.Root(pid), name)
	if err != nil {
		return nil, err
	}
	return regular(at, unix.O_NOFOLLOW)
}

// regular opens a file for reading if it is a regular one. Until that is known, nothing is opened but its name: no
// device notices, and nobody is waited for at a pipe.
func regular(name string, flags int) (*os.File, error) {
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	}
	return os.Open("/proc/self/fd/" + strconv.Itoa(fd))
}
