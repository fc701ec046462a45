package export

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openFlags follow no link, and do not wait for a reader where the path is a pipe.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// isLink reports whether an opening failed because of O_NOFOLLOW (open(2)).
func isLink(err error) bool { return errors.Is(err, unix.ELOOP) }
