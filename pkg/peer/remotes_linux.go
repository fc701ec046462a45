package peer

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// Of linux/unix_diag.h and net/tcp_states.h.
const (
	showName    = 1 // UDIAG_SHOW_NAME
	showWaiting = 8 // UDIAG_SHOW_ICONS
	diagName    = 0 // UNIX_DIAG_NAME
	diagWaiting = 3 // UNIX_DIAG_ICONS: the sockets that wait to be accepted
	tcpSynSent  = 2
	tcpListen   = 10
)

// Remote is where a stream leads to: "unix" and the path that the other end is bound to, with an @ in front where that
// is no file's; or "tcp" and an address with a port.
type Remote struct{ Network, Address string }

// Remotes returns where each stream socket of our network namespace leads to, by the socket's inode: of those that
// are connected, that wait to be accepted, or that wait for an answer from another machine. Unix sockets whose other
// end has no name are left out.
func Remotes() (map[uint64]Remote, error) {
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		return nil, err
	}
	defer diag.Close()
	remotes := map[uint64]Remote{}
	errs := []error{unixRemotes(diag, remotes)}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		errs = append(errs, tcpRemotes(diag, family, remotes))
	}
	return remotes, errors.Join(errs...)
}

func unixRemotes(diag *netlink.Conn, remotes map[uint64]Remote) error {
	request := make([]byte, unixRequestSize)
	request[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[4:], 1<<tcpEstablished|1<<tcpListen)
	binary.NativeEndian.PutUint32(request[12:], showName|showPeer|showWaiting)
	answers, err := dump(diag, request)
	if err != nil {
		return err
	}
	names, peers := map[uint32]string{}, map[uint32]uint32{}
	for _, m := range answers {
		if len(m.Data) < unixMessageSize {
			continue
		}
		inode := binary.NativeEndian.Uint32(m.Data[unixInodeAt:])
		attributes, err := netlink.UnmarshalAttributes(m.Data[unixMessageSize:])
		if err != nil {
			return err
		}
		for _, a := range attributes {
			switch {
			case a.Type == diagName:
				names[inode] = nameIn(a.Data)
			case a.Type == diagPeer && len(a.Data) == 4:
				if other := binary.NativeEndian.Uint32(a.Data); other != 0 { // 0: it waits to be accepted
					peers[inode] = other
				}
			case a.Type == diagWaiting:
				for i := 0; i+4 <= len(a.Data); i += 4 {
					peers[binary.NativeEndian.Uint32(a.Data[i:])] = inode
				}
			}
		}
	}
	for inode, other := range peers {
		if name := names[other]; name != "" && inode != 0 {
			remotes[uint64(inode)] = Remote{"unix", name}
		}
	}
	return nil
}

// nameIn is a path, or what a NUL in front of it says is none.
func nameIn(b []byte) string {
	if len(b) > 1 && b[0] == 0 {
		return "@" + string(b[1:])
	}
	return unix.ByteSliceToString(b)
}

func tcpRemotes(diag *netlink.Conn, family byte, remotes map[uint64]Remote) error {
	request := make([]byte, requestSize)
	request[0], request[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[4:], 1<<tcpEstablished|1<<tcpSynSent)
	answers, err := dump(diag, request)
	if err != nil {
		return err
	}
	for _, m := range answers {
		if len(m.Data) < messageSize {
			continue
		}
		_, other := addressesIn(m.Data)
		if inode := binary.NativeEndian.Uint32(m.Data[inodeAt:]); inode != 0 && other != (netip.AddrPort{}) {
			remotes[uint64(inode)] = Remote{"tcp", other.String()}
		}
	}
	return nil
}
