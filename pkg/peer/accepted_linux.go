package peer

import (
	"encoding/binary"
	"errors"
	"net"
	"syscall"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// linux/unix_diag.h
const (
	unixRequestSize = 24 // struct unix_diag_req
	unixMessageSize = 16 // struct unix_diag_msg
	showPeer        = 4  // UDIAG_SHOW_PEER
	showUnread      = 16 // UDIAG_SHOW_RQLEN
	diagPeer        = 2  // UNIX_DIAG_PEER
	diagUnread      = 4  // UNIX_DIAG_RQLEN
)

// waiting reports whether a connection is queued: its other end has no inode until accepted.
func waiting(c net.Conn) bool {
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return false
	}
	defer diag.Close()
	switch c := c.(type) {
	case *net.UnixConn:
		inode, known := unixPeer(diag, c)
		return known && inode == 0 && !hungUp(c)
	case *net.TCPConn:
		_, err := other(diag, c)
		return errors.Is(err, errUnclaimed)
	}
	return false
}

func unixPeer(diag *netlink.Conn, c *net.UnixConn) (inode uint32, known bool) {
	var own unix.Stat_t
	err := control(c, func(fd int) error { return unix.Fstat(fd, &own) })
	if err != nil {
		return 0, false
	}
	request := unixRequest(^uint32(0), showPeer) // any state
	binary.NativeEndian.PutUint32(request[8:], uint32(own.Ino))
	binary.NativeEndian.PutUint64(request[16:], ^uint64(0)) // any cookie
	answers, err := diag.Execute(netlink.Message{
		Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request}, Data: request,
	})
	if err != nil || len(answers) != 1 || len(answers[0].Data) < unixMessageSize {
		return 0, false
	}
	return otherIn(answers[0].Data[unixMessageSize:])
}

// otherIn reads the other end's inode of a unix socket (UDIAG_SHOW_PEER), 0 until accepted.
func otherIn(attributes []byte) (inode uint32, known bool) {
	for kind, data := range attributesIn(attributes) {
		if kind == diagPeer && len(data) == 4 {
			return binary.NativeEndian.Uint32(data), true
		}
	}
	return 0, false
}

func hungUp(c *net.UnixConn) (is bool) {
	_ = control(c, func(fd int) error {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		is = n == 1 && poll[0].Revents&unix.POLLHUP != 0
		return err
	})
	return is
}

func control(c syscall.Conn, f func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(raw.Control(func(fd uintptr) { err = f(int(fd)) }), err)
}
