package programs

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// LockFile examines a lock file as the process pid sees it. It returns nil if it cannot, or if the path is relative.
func LockFile(pid int, path string) *event.LockFile {
	if !filepath.IsAbs(path) {
		return nil
	}
	at, err := securejoin.SecureJoin(procfs.Root(pid), path)
	if err != nil {
		return nil
	}
	// Without O_NONBLOCK, a FIFO would block.
	file, err := os.OpenFile(at, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return nil
	}
	l := &event.LockFile{Path: path, Written: about.ModTime().UnixNano()}
	if !about.Mode().IsRegular() {
		return l
	}
	content, _ := io.ReadAll(io.LimitReader(file, 64))
	if sees(pid) {
		l.Maker = maker(string(content))
	}
	if l.Maker == nil {
		return l
	}
	began, err := procfs.Started(int(l.Maker.PID))
	if l.Gone = err != nil || began.After(about.ModTime()); !l.Gone {
		if stat, err := procfs.StatOf(int(l.Maker.PID)); err == nil {
			l.Maker.Name = text.Clean(stat.Name, text.Bound)
		}
	}
	return l
}

// sees reports whether pid's PIDs are those of /proc: in another PID namespace they name other processes.
func sees(pid int) bool {
	theirs, err := procfs.Namespace(pid, "pid")
	ours, err2 := procfs.OwnNamespace("pid")
	return err == nil && err2 == nil && theirs == ours
}

// maker returns the process whose number is the whole content, or nil.
func maker(content string) *event.Actor {
	n, err := strconv.ParseUint(strings.TrimSpace(content), 10, 22)
	if err != nil || n == 0 {
		return nil
	}
	return &event.Actor{PID: uint32(n)}
}
