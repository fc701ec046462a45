package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"net"
	"net/netip"
	"path"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// linux/unix_diag.h and net/tcp_states.h
const (
	showName    = 1 // UDIAG_SHOW_NAME
	showWaiting = 8 // UDIAG_SHOW_ICONS
	unixStateAt = 2 // in struct unix_diag_msg
	unixInodeAt = 4
	diagName    = 0 // UNIX_DIAG_NAME
	diagWaiting = 3 // UNIX_DIAG_ICONS: not yet accepted
	tcpSynSent  = 2
	tcpListen   = 10
)

// listMax bounds the kernel's time to about 50 ms.
const listMax = 1 << 16

// messagesMax is the kernel's (netlink_recvmsg).
const messagesMax = 32 << 10

var errCut = errors.New("the list of sockets (sock_diag) was cut")

// Remote is "unix" with a path (or "@" and an abstract name), or "tcp" with address and port.
type Remote struct{ Network, Address string }

// Remotes returns the destinations of our network namespace's stream sockets by inode: connected, connecting, or not
// yet accepted, without nameless unix sockets. With an error, such as for more than 65,536 sockets of a kind,
// the result is incomplete.
func Remotes(wanted []uint64) (map[uint64]Remote, error) {
	remotes, of := map[uint64]Remote{}, make(map[uint32]bool, len(wanted))
	for _, inode := range wanted {
		of[uint32(inode)] = true
	}
	errs := []error{unixRemotes(of, remotes)}
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		states := uint32(1<<tcpEstablished | 1<<tcpSynSent)
		errs = append(errs, tcpSockets(family, states, listMax, func(inode uint32, _, other netip.AddrPort) {
			if of[inode] && other != (netip.AddrPort{}) {
				remotes[uint64(inode)] = Remote{"tcp", other.String()}
			}
		}))
	}
	return remotes, errors.Join(errs...)
}

func list(request []byte, most int, each func(m []byte) error) error {
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, &netlink.Config{MessageBufferSize: messagesMax})
	if err != nil {
		return err
	}
	defer diag.Close() // also ends the kernel's list
	header := netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump}
	sent, err := diag.Send(netlink.Message{Header: header, Data: request})
	if err != nil {
		return fmt.Errorf("asking the kernel for its sockets (sock_diag): %w", err)
	}
	for m, err := range diag.ReceiveIter() {
		if err == nil {
			err = netlink.Validate(sent, []netlink.Message{m})
		}
		if most--; err == nil && most < 0 {
			err = errCut
		}
		if err == nil {
			err = each(m.Data)
		}
		if err != nil {
			_ = diag.Close()
			return fmt.Errorf("reading the kernel's list of sockets (sock_diag): %w", err)
		}
	}
	return nil
}

// unixRemotes lists ends before names, to store only wanted names.
func unixRemotes(wanted map[uint32]bool, remotes map[uint64]Remote) error {
	others := map[uint32]uint32{} // other end -> wanted inode
	err := unixSockets(1<<tcpEstablished|1<<tcpListen, showName|showPeer|showWaiting, listMax, func(s unixSocket) error {
		if !s.listens && !wanted[s.inode] {
			return nil
		}
		name := ""
		for kind, data := range attributesIn(s.shown) {
			switch {
			case kind == diagName:
				name = nameIn(data)
			case kind == diagPeer && len(data) == 4 && wanted[s.inode]:
				if other := binary.NativeEndian.Uint32(data); other != 0 { // 0: not yet accepted
					others[other] = s.inode
				}
			case kind == diagWaiting:
				for i := 0; i+4 <= len(data) && name != ""; i += 4 {
					if waiting := binary.NativeEndian.Uint32(data[i:]); wanted[waiting] {
						remotes[uint64(waiting)] = Remote{"unix", name}
					}
				}
			}
		}
		return nil
	})
	if len(others) == 0 {
		return err
	}
	return errors.Join(err, unixSockets(1<<tcpEstablished, showName, listMax, func(s unixSocket) error {
		of, is := others[s.inode]
		if !is {
			return nil
		}
		for kind, data := range attributesIn(s.shown) {
			if name := nameIn(data); kind == diagName && name != "" {
				remotes[uint64(of)] = Remote{"unix", name}
			}
		}
		return nil
	}))
}

type unixSocket struct {
	inode   uint32
	listens bool
	shown   []byte
}

// attributesIn yields types and values, the name first.
func attributesIn(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= unix.SizeofNlAttr {
			n := int(binary.NativeEndian.Uint16(b))
			if n < unix.SizeofNlAttr || n > len(b) || !yield(binary.NativeEndian.Uint16(b[2:]), b[unix.SizeofNlAttr:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

func unixRequest(states, show uint32) []byte {
	request := make([]byte, unixRequestSize)
	request[0] = unix.AF_UNIX
	binary.NativeEndian.PutUint32(request[4:], states)
	binary.NativeEndian.PutUint32(request[12:], show)
	return request
}

func unixSockets(states, show uint32, most int, each func(unixSocket) error) error {
	return list(unixRequest(states, show), most, func(m []byte) error {
		if len(m) < unixMessageSize {
			return nil
		}
		s := unixSocket{binary.NativeEndian.Uint32(m[unixInodeAt:]), m[unixStateAt] == tcpListen, m[unixMessageSize:]}
		if s.inode == 0 {
			return nil
		}
		return each(s)
	})
}

func nameIn(b []byte) string {
	if len(b) > 1 && b[0] == 0 {
		return "@" + string(b[1:])
	}
	return unix.ByteSliceToString(b)
}

func tcpRequest(family byte, states uint32) []byte {
	request := make([]byte, requestSize)
	request[0], request[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[4:], states)
	return request
}

func tcpSockets(family byte, states uint32, most int, each func(inode uint32, of, other netip.AddrPort)) error {
	return list(tcpRequest(family, states), most, func(m []byte) error {
		if len(m) >= messageSize {
			of, other := addressesIn(m)
			each(binary.NativeEndian.Uint32(m[inodeAt:]), of, other)
		}
		return nil
	})
}

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
		for kind, data := range attributesIn(s.shown) {
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
