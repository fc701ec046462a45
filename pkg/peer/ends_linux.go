package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// unixInodeAt is an offset in struct unix_diag_msg.
const unixInodeAt = 4

// TCP returns the inode of the connected socket with these addresses; ErrGone if our network namespace has none.
func TCP(of, other netip.AddrPort) (inode uint64, err error) {
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return 0, err
	}
	defer diag.Close()
	s, err := socketOf(diag, netip.AddrPortFrom(of.Addr().Unmap(), of.Port()), netip.AddrPortFrom(other.Addr().Unmap(), other.Port()))
	return uint64(s.inode), err
}

// End is the other end of a stream.
type End struct {
	Inode   uint64
	Network string // "unix" or "tcp"
}

// Streams returns the other ends of our network namespace's unix and TCP sockets by inode. Other ends elsewhere are
// omitted.
func Streams() (map[uint64]End, error) {
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, err
	}
	defer diag.Close()
	ends := map[uint64]End{}
	errs := []error{unixStreams(diag, ends)}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		errs = append(errs, tcpStreams(diag, family, ends))
	}
	return ends, errors.Join(errs...)
}

func dump(diag *netlink.Conn, request []byte) ([]netlink.Message, error) {
	answers, err := diag.Execute(netlink.Message{Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump}, Data: request})
	if err != nil {
		return nil, fmt.Errorf("asking the kernel for its sockets (sock_diag): %w", err)
	}
	return answers, nil
}

func unixStreams(diag *netlink.Conn, ends map[uint64]End) error {
	request := make([]byte, unixRequestSize)
	request[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[4:], 1<<tcpEstablished)
	binary.NativeEndian.PutUint32(request[12:], showPeer)
	answers, err := dump(diag, request)
	if err != nil {
		return err
	}
	for _, m := range answers {
		if other, known := otherIn(m); known {
			ends[uint64(binary.NativeEndian.Uint32(m.Data[unixInodeAt:]))] = End{uint64(other), "unix"}
		}
	}
	return nil
}

func tcpStreams(diag *netlink.Conn, family byte, ends map[uint64]End) error {
	request := make([]byte, requestSize)
	request[0], request[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[4:], 1<<tcpEstablished)
	answers, err := dump(diag, request)
	if err != nil {
		return err
	}
	type pair struct{ of, other netip.AddrPort }
	inodes := map[pair]uint64{}
	for _, m := range answers {
		if len(m.Data) >= messageSize {
			of, other := addressesIn(m.Data)
			inodes[pair{of, other}] = uint64(binary.NativeEndian.Uint32(m.Data[inodeAt:]))
		}
	}
	for p, inode := range inodes {
		if other := inodes[pair{p.other, p.of}]; other != 0 && inode != 0 {
			ends[inode] = End{other, "tcp"}
		}
	}
	return nil
}
