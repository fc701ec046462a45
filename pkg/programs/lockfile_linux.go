package programs

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// LockFile examines a lock file as the process pid sees it, itself if it is a link. It returns nil if it cannot, or if
// the path is relative.
func LockFile(pid int, path string) *event.LockFile {
	if !filepath.IsAbs(path) {
		return nil
	}
	dir, err := securejoin.SecureJoin(procfs.Root(pid), filepath.Dir(path))
	if err != nil {
		return nil
	}
	at := filepath.Join(dir, filepath.Base(filepath.Clean(path)))
	about, err := os.Lstat(at)
	if err != nil {
		return nil
	}
	l := &event.LockFile{Path: path, Written: about.ModTime().UnixNano()}
	file, err := procfs.OpenRegular(at, unix.O_NOFOLLOW)
	if err != nil {
		return l
	}
	defer file.Close()
	content, _ := io.ReadAll(io.LimitReader(file, 64))
	if about, err = file.Stat(); err == nil && sees(pid) {
		l.Maker = maker(string(content), about)
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

// maker returns the process whose number is the whole content, or nil if another user may have written it.
func maker(content string, about fs.FileInfo) *event.Actor {
	n, err := strconv.ParseUint(strings.TrimSpace(content), 10, 22)
	if err != nil || n == 0 || about.Mode()&0o022 != 0 {
		return nil
	}
	if owner := about.Sys().(*syscall.Stat_t).Uid; owner != 0 {
		if s, err := procfs.StatusOf(int(n)); err != nil || s.UID != uint64(owner) {
			return nil
		}
	}
	return &event.Actor{PID: uint32(n)}
}
