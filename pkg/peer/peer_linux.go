package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// linux/sock_diag.h, linux/inet_diag.h and net/tcp_states.h
const (
	sockDiagByFamily = 20
	requestSize      = 56 // struct inet_diag_req_v2
	messageSize      = 72 // struct inet_diag_msg
	addressesAt      = 4  // of struct inet_diag_sockid, at 8 in the request
	cookieAt         = 44
	uidAt            = 64
	inodeAt          = 68
	tcpEstablished   = 1
)

// socket has a cookie because inode numbers recur after 2^32 sockets.
type socket struct {
	inode  uint32
	uid    uint32
	cookie uint64
}

var errUnclaimed = fmt.Errorf("no process has it open: %w", ErrGone)

// Owned reports for each connection whether its other end belongs to the processes: nil, ErrStranger, ErrGone, or
// another error. Call it after the connections
// were made.
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

func other(diag *netlink.Conn, c *net.TCPConn) (socket, error) {
	s, err := socketOf(diag, addrPort(c.RemoteAddr()), addrPort(c.LocalAddr()))
	// An earlier owner of the port may have written and exited: the connection must be established.
	if (err == nil || errors.Is(err, errUnclaimed)) && !established(c) {
		return socket{}, ErrGone
	}
	return s, err
}

func socketOf(diag *netlink.Conn, there, here netip.AddrPort) (socket, error) {
	family := byte(unix.AF_INET6)
	if there.Addr().Is4() {
		family = unix.AF_INET
	}
	request := tcpRequest(family, 1<<tcpEstablished)
	binary.BigEndian.PutUint16(request[8:], there.Port())
	binary.BigEndian.PutUint16(request[10:], here.Port())
	copy(request[12:], there.Addr().AsSlice())
	copy(request[28:], here.Addr().AsSlice())
	binary.NativeEndian.PutUint64(request[48:], ^uint64(0)) // any cookie
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
	of, peer := addressesIn(m)
	if m[1] != tcpEstablished || of != there || peer != here {
		return socket{}, ErrGone
	}
	s := socket{inode: binary.NativeEndian.Uint32(m[inodeAt:]), uid: binary.NativeEndian.Uint32(m[uidAt:])}
	s.cookie = uint64(binary.NativeEndian.Uint32(m[cookieAt:])) | uint64(binary.NativeEndian.Uint32(m[cookieAt+4:]))<<32
	if s.inode == 0 {
		return socket{}, errUnclaimed
	}
	return s, nil
}

// addressesIn reads a struct inet_diag_msg. IPv6 sockets have mapped IPv4 addresses.
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

func established(c *net.TCPConn) (is bool) {
	_ = control(c, func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		is = err == nil && info.State == tcpEstablished
		return err
	})
	return is
}

type descriptor struct{ pid, fd int }

func descriptors(pids []int, wanted map[uint32]bool) (map[uint32][]descriptor, error) {
	found := map[uint32][]descriptor{}
	var failed error
	for _, pid := range pids {
		err := procfs.Descriptors(pid, func(fd int, target string) bool {
			if inode := uint32(procfs.SocketIn(target)); wanted[inode] {
				found[inode] = append(found[inode], descriptor{pid, fd})
			}
			return true
		})
		if err != nil && !procfs.Gone(err) {
			failed = fmt.Errorf("reading the descriptors of process %d: %w", pid, err)
		}
	}
	if len(found) > 0 {
		failed = nil
	}
	return found, failed
}

// is falls back to the inode if the descriptor is unreadable (Yama's ptrace_scope 3).
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
