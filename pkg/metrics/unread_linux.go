package metrics

import (
	"net"

	"golang.org/x/sys/unix"
)

func unread(c *net.TCPConn) (some bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.IoctlGetInt(int(fd), unix.SIOCINQ)
		some = err == nil && n > 0
	})
	return some
}
