package export

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openFlags refuse links and do not block on a pipe.
const openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// isLink reports whether open failed because of O_NOFOLLOW (open(2)).
func isLink(err error) bool { return errors.Is(err, unix.ELOOP) }
