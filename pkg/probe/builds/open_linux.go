package builds

import (
	"io/fs"
	"os"
	"path"
	"syscall"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/clock"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Identity changes with a file and its content.
type Identity struct {
	device, inode     uint64
	size              int64
	modified, changed unix.Timespec
}

// IdentityOf returns the identity of a file, zero if the system has none.
func IdentityOf(info fs.FileInfo) Identity {
	s, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return Identity{}
	}
	return Identity{s.Dev, s.Ino, s.Size, unix.Timespec(s.Mtim), unix.Timespec(s.Ctim)}
}

// runsStill saves opening the known file. A reused PID is harmless.
func (l look) runsStill(before file) bool {
	var s unix.Stat_t
	if before.build == "" || before.id == (Identity{}) || unix.Stat(procfs.Runs(l.pid), &s) != nil {
		return false
	}
	return before.id == Identity{s.Dev, s.Ino, s.Size, s.Mtim, s.Ctim}
}

// open opens the program; after its exit, the file that PID 1 sees at the path.
func (l look) open() (*os.File, error) {
	f, err := l.running()
	if err != nil {
		f, err = seenBy(1, l.name)
	}
	return f, err
}

// running opens the program of the process, and fails if another process has the PID by then.
func (l look) running() (f *os.File, err error) {
	if !l.runs() {
		return nil, fs.ErrNotExist
	}
	err = fs.ErrNotExist
	if runs, linkErr := procfs.Executable(l.pid); linkErr == nil && path.Base(runs) == path.Base(l.name) {
		f, err = procfs.OpenRegular(procfs.Runs(l.pid), 0)
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

func (l look) runs() bool {
	stat, err := procfs.StatOf(l.pid)
	return err == nil && stat.BeganAt(l.started+clock.Suspended())
}

func seenBy(pid int, name string) (*os.File, error) {
	at, err := securejoin.SecureJoin(procfs.Root(pid), name)
	if err != nil {
		return nil, err
	}
	return procfs.OpenRegular(at, unix.O_NOFOLLOW)
}

// Running opens a process's executable, never a path, which may lead elsewhere.
func Running(pid int) (*os.File, error) { return procfs.OpenRegular(procfs.Runs(pid), 0) }
