package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// Of linux/sock_diag.h, linux/inet_diag.h and net/tcp_states.h.
const (
	sockDiagByFamily = 20
	requestSize      = 56 // struct inet_diag_req_v2
	messageSize      = 72 // struct inet_diag_msg
	addressesAt      = 4  // struct inet_diag_sockid in the message, in the request it is at 8
	cookieAt         = 44
	inodeAt          = 68
	tcpEstablished   = 1
)

// socket is what tells one socket from all others: the number that /proc shows, which comes
// again after 2^32 others, and the kernel's cookie, which does not.
type socket struct {
	inode  uint32
	cookie uint64
}

// errUnclaimed: nobody has the socket open any more, or yet.
var errUnclaimed = fmt.Errorf("nobody has it open: %w", ErrGone)

// Owned tells of each connection whether its other end belongs to one of the processes: nil,
// ErrStranger, ErrGone, or what went wrong. The descriptors of the processes are read once for
// all, after the connections were made, and not at all if none of them is on this machine.
func Owned(conns []*net.TCPConn, pids []int) []error {
	errs := make([]error, len(conns))
	sockets := make([]socket, len(conns))
	wanted := map[uint32]bool{}
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err == nil {
		defer diag.Close()
	}
	for i, c := range conns {
		if errs[i] = err; err == nil {
			sockets[i], errs[i] = other(diag, c)
		}
		if errs[i] == nil {
			wanted[sockets[i].inode] = true
		}
	}
	if len(wanted) == 0 {
		return errs
	}
	found, err := descriptors(pids, wanted)
	for i, s := range sockets {
		if errs[i] != nil {
			continue
		}
		errs[i] = ErrStranger
		if err != nil {
			errs[i] = err
		}
		for _, d := range found[s.inode] {
			if d.is(s.cookie) {
				errs[i] = nil
			}
		}
	}
	return errs
}

// other asks for the socket at the other end of a connection.
func other(diag *netlink.Conn, c *net.TCPConn) (socket, error) {
	s, err := socketOf(diag, addrPort(c.RemoteAddr()), addrPort(c.LocalAddr()))
	// Somebody may have had that port before, written something, and broken off: what has been
	// found is the other end only of a connection that has been there all the time.
	if (err == nil || errors.Is(err, errUnclaimed)) && !established(c) {
		return socket{}, ErrGone
	}
	return s, err
}

// socketOf asks for the socket with an address whose other end has the other one.
func socketOf(diag *netlink.Conn, there, here netip.AddrPort) (socket, error) {
	id := sockID(there, here)
	family := byte(unix.AF_INET6)
	if there.Addr().Is4() {
		family = unix.AF_INET
	}
	request := make([]byte, 8, requestSize)
	request[0], request[1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[4:], 1<<tcpEstablished)
	request = append(request, id...)
	request = binary.NativeEndian.AppendUint32(request, 0)          // any interface
	request = binary.NativeEndian.AppendUint64(request, ^uint64(0)) // any cookie
	answers, err := diag.Execute(netlink.Message{
		Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request}, Data: request,
	})
	if errors.Is(err, unix.ENOENT) {
		return socket{}, ErrGone
	}
	if err != nil {
		return socket{}, fmt.Errorf("asking the kernel for a socket (sock_diag): %w", err)
	}
	if len(answers) != 1 || len(answers[0].Data) < messageSize {
		return socket{}, errors.New("the kernel's answer about a socket (sock_diag) cannot be understood")
	}
	m := answers[0].Data
	// Where there is no connection the kernel gives whoever listens on that port.
	of, peer := addressesIn(m)
	if m[1] != tcpEstablished || of != there || peer != here {
		return socket{}, ErrGone
	}
	s := socket{inode: binary.NativeEndian.Uint32(m[inodeAt:])}
	s.cookie = uint64(binary.NativeEndian.Uint32(m[cookieAt:])) | uint64(binary.NativeEndian.Uint32(m[cookieAt+4:]))<<32
	if s.inode == 0 {
		return socket{}, errUnclaimed
	}
	return s, nil
}

// addrPort is a connection's address, of IPv4 if it can be.
func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// sockID is the beginning of struct inet_diag_sockid: the ports and addresses of a socket and of its peer.
func sockID(of, peer netip.AddrPort) []byte {
	b := make([]byte, 36)
	binary.BigEndian.PutUint16(b, of.Port())
	binary.BigEndian.PutUint16(b[2:], peer.Port())
	copy(b[4:20], of.Addr().AsSlice())
	copy(b[20:36], peer.Addr().AsSlice())
	return b
}

// addressesIn reads those of a socket and of its peer from a struct inet_diag_msg, of IPv4 if
// they can be: a socket of IPv6 may have a connection of IPv4, and has mapped addresses then.
func addressesIn(m []byte) (of, peer netip.AddrPort) {
	size := 16
	if m[0] == unix.AF_INET {
		size = 4
	}
	read := func(port, address int) netip.AddrPort {
		a, _ := netip.AddrFromSlice(m[address : address+size])
		return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(m[port:]))
	}
	return read(addressesAt, addressesAt+4), read(addressesAt+2, addressesAt+20)
}

// established reports whether a connection of ours has not been closed by its other end.
func established(c *net.TCPConn) (is bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.SOL_TCP, unix.TCP_INFO)
		is = err == nil && info.State == tcpEstablished
	})
	return is
}

// descriptor is one of a process that is a wanted socket.
type descriptor struct{ pid, fd int }

// descriptors finds wanted sockets among the descriptors of processes. The error says whose
// could not be read, if nothing was found.
func descriptors(pids []int, wanted map[uint32]bool) (map[uint32][]descriptor, error) {
	found := map[uint32][]descriptor{}
	var failed error
	for _, pid := range pids {
		if err := walk(pid, wanted, found); err != nil && !procfs.Gone(err) {
			failed = fmt.Errorf("reading the descriptors of process %d: %w", pid, err)
		}
	}
	if len(found) > 0 {
		failed = nil
	}
	return found, failed
}

func walk(pid int, wanted map[uint32]bool, found map[uint32][]descriptor) error {
	return procfs.Descriptors(pid, func(fd int, target string) bool {
		if number, ok := strings.CutPrefix(target, "socket:["); ok {
			inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 32)
			if err == nil && wanted[uint32(inode)] {
				found[uint32(inode)] = append(found[uint32(inode)], descriptor{pid, fd})
			}
		}
		return true
	})
}

// is reports whether a descriptor is the socket with that cookie. Where looking is forbidden
// (Yama's ptrace_scope 3) the inode's number has to do.
func (d descriptor) is(cookie uint64) bool {
	process, err := unix.PidfdOpen(d.pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, d.fd, 0)
	if errors.Is(err, unix.EPERM) {
		return true
	}
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	got, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	return err == nil && got == cookie
}
