package peer

import (
	"encoding/binary"
	"errors"
	"net"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// linux/unix_diag.h
const (
	unixRequestSize = 24 // struct unix_diag_req
	unixMessageSize = 16 // struct unix_diag_msg
	showPeer        = 4  // UDIAG_SHOW_PEER
	diagPeer        = 2  // UNIX_DIAG_PEER
)

// waiting reports whether a connection is in the listener's queue: until it is accepted, its other end has no inode.
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
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	var own unix.Stat_t
	if cerr := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &own) }); cerr != nil || err != nil {
		return 0, false
	}
	request := make([]byte, unixRequestSize)
	request[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[4:], ^uint32(0)) // any state
	binary.NativeEndian.PutUint32(request[8:], uint32(own.Ino))
	binary.NativeEndian.PutUint32(request[12:], showPeer)
	binary.NativeEndian.PutUint64(request[16:], ^uint64(0)) // any cookie
	answers, err := diag.Execute(netlink.Message{
		Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request}, Data: request,
	})
	if err != nil || len(answers) != 1 {
		return 0, false
	}
	return otherIn(answers[0])
}

// otherIn reads the other end's inode from a struct unix_diag_msg (UDIAG_SHOW_PEER).
func otherIn(m netlink.Message) (inode uint32, known bool) {
	if len(m.Data) < unixMessageSize {
		return 0, false
	}
	attributes, err := netlink.UnmarshalAttributes(m.Data[unixMessageSize:])
	if err != nil {
		return 0, false
	}
	for _, a := range attributes {
		if a.Type == diagPeer && len(a.Data) == 4 {
			return binary.NativeEndian.Uint32(a.Data), true
		}
	}
	return 0, false
}

func hungUp(c *net.UnixConn) (is bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		is = err == nil && n == 1 && poll[0].Revents&unix.POLLHUP != 0
	})
	return is
}
