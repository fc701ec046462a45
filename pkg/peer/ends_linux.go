package peer

import (
	"encoding/binary"
	"errors"
	"math"
	"net"
	"net/netip"
	"path"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// TCP returns the inode of our network namespace's socket with these addresses, or ErrGone.
func TCP(of, other netip.AddrPort) (inode uint64, err error) {
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return 0, err
	}
	defer diag.Close()
	s, err := socketOf(diag, unmapped(of), unmapped(other))
	return uint64(s.inode), err
}

// UID returns the user who made a connection's other end, in our network namespace.
func UID(c *net.TCPConn) (uid uint32, ok bool) {
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return 0, false
	}
	defer diag.Close()
	s, err := socketOf(diag, addrPort(c.RemoteAddr()), addrPort(c.LocalAddr()))
	return s.uid, err == nil
}

// End is a stream's other end.
type End struct {
	Inode   uint64
	Network string // "unix" or "tcp"
}

// Connected returns other ends of unix sockets by inode, those whose path has that base, and unread sockets.
func Connected(base string) (ends, at map[uint64]uint64, unread map[uint64]bool, err error) {
	ends, at, unread = map[uint64]uint64{}, map[uint64]uint64{}, map[uint64]bool{}
	err = unixSockets(1<<tcpEstablished, showName|showPeer|showUnread, math.MaxInt, func(s unixSocket) error {
		inode, named := uint64(s.inode), false
		for kind, data := range s.attributes() {
			switch {
			case kind == diagName:
				named = path.Base(nameIn(data)) == base
			case kind == diagPeer && len(data) == 4 && binary.NativeEndian.Uint32(data) != 0:
				ends[inode] = uint64(binary.NativeEndian.Uint32(data))
			case kind == diagUnread && len(data) == 8 && binary.NativeEndian.Uint32(data) > 0:
				unread[inode] = true
			}
		}
		if named && ends[inode] != 0 {
			at[inode] = ends[inode]
		}
		return nil
	})
	return ends, at, unread, err
}

// Streams returns other ends of unix and TCP sockets by inode, in our network namespace.
func Streams() (map[uint64]End, error) {
	ends := map[uint64]End{}
	errs := []error{unixSockets(1<<tcpEstablished, showPeer, math.MaxInt, func(s unixSocket) error {
		if other, known := otherIn(s.shown); known {
			ends[uint64(s.inode)] = End{uint64(other), "unix"}
		}
		return nil
	})}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		type pair struct{ of, other netip.AddrPort }
		inodes := map[pair]uint64{}
		errs = append(errs, tcpSockets(family, 1<<tcpEstablished, math.MaxInt, func(inode uint32, of, other netip.AddrPort) {
			inodes[pair{of, other}] = uint64(inode)
		}))
		for p, inode := range inodes {
			if other := inodes[pair{p.other, p.of}]; other != 0 && inode != 0 {
				ends[inode] = End{other, "tcp"}
			}
		}
	}
	return ends, errors.Join(errs...)
}
