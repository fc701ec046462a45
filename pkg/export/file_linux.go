package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// foreign returns an error if the file belongs to another user or has a second name (hard link).
func foreign(info fs.FileInfo) error {
	s := info.Sys().(*syscall.Stat_t)
	switch {
	case s.Uid != 0 && int(s.Uid) != os.Geteuid():
		return fmt.Errorf("belongs to uid %d: remove it, or name one in a folder of root", s.Uid)
	case s.Nlink > 1 && info.Mode().IsRegular():
		return fmt.Errorf("has %d names: remove it, or name one in a folder of root", s.Nlink)
	}
	return nil
}

func isLink(err error) bool { return errors.Is(err, unix.ELOOP) }
