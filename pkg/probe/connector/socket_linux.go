package connector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	// room for 10,000 messages of 768 bytes
	buffer = 8 << 20
	batch  = 64
)

type socket struct {
	fd       int
	messages [batch]mmsghdr
	names    [batch]unix.RawSockaddrNetlink
	vectors  [batch]unix.Iovec
	data     [batch][messageMax]byte
	wait     time.Duration
	listens  int
}

// mmsghdr is struct mmsghdr (recvmmsg(2)), which x/sys lacks.
type mmsghdr struct {
	header unix.Msghdr
	n      uint32
	_      [4]byte
}

// newSocket needs CAP_NET_ADMIN and the initial network namespace.
func newSocket() (s *socket, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_CONNECTOR)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	s = &socket{fd: fd}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer); err != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: idxProc}); err != nil {
		_ = s.close()
		return nil, fmt.Errorf("bind: %w", err)
	}
	for i := range s.messages {
		s.vectors[i].Base = &s.data[i][0]
		s.vectors[i].SetLen(messageMax)
		h := &s.messages[i].header
		h.Name, h.Iov = (*byte)(unsafe.Pointer(&s.names[i])), &s.vectors[i]
		h.SetIovlen(1)
	}
	return s, nil
}

func (s *socket) close() error { return os.NewSyscallError("close", unix.Close(s.fd)) }

// onlyPrograms filters execs, onlyForksOf forks of up to parentsMax parents.
func (s *socket) onlyPrograms() error {
	return s.only([]bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetWhat, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: swapped(whatExec), SkipFalse: 1},
		bpf.RetConstant{Val: 1 << 16},
		bpf.RetConstant{Val: 0},
	})
}

const parentsMax = 64

func (s *socket) onlyForksOf(parents []uint32) error {
	parents = parents[:min(len(parents), parentsMax)]
	n := len(parents)
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetWhat, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: swapped(whatFork), SkipTrue: uint8(n + 1)},
		bpf.LoadAbsolute{Off: offsetData + 4, Size: 4},
	}
	for i, p := range parents {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: swapped(p), SkipTrue: uint8(n - i)})
	}
	return s.only(append(program, bpf.RetConstant{Val: 0}, bpf.RetConstant{Val: 1 << 16}))
}

// only sets a filter of messages, whose constants are in network byte order.
func (s *socket) only(instructions []bpf.Instruction) error {
	program, err := bpf.Assemble(instructions)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(program))
	for i, p := range program {
		filter[i] = unix.SockFilter{Code: p.Op, Jt: p.Jt, Jf: p.Jf, K: p.K}
	}
	return os.NewSyscallError("SO_ATTACH_FILTER", unix.SetsockoptSockFprog(s.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}))
}

func swapped(v uint32) uint32 {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	return binary.BigEndian.Uint32(b[:])
}

func (s *socket) control(op uint32) error {
	var m [sizeofHeaders + 4]byte
	put, half := binary.NativeEndian.PutUint32, binary.NativeEndian.PutUint16
	put(m[0:], uint32(len(m)))
	half(m[4:], unix.NLMSG_DONE)
	put(m[12:], uint32(os.Getpid()))
	put(m[16:], idxProc)
	put(m[20:], valProc)
	half(m[32:], 4) // length of op
	put(m[sizeofHeaders:], op)
	return os.NewSyscallError("sendto", unix.Sendto(s.fd, m[:], 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}))
}

var errLost = errors.New("messages were lost")

// read returns up to batch messages; none after the timeout.
func (s *socket) read(wait time.Duration) (int, error) {
	flags := unix.MSG_DONTWAIT
	if wait > 0 {
		flags = unix.MSG_WAITFORONE
		if wait != s.wait {
			timeout := unix.NsecToTimeval(int64(wait))
			if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
				return 0, os.NewSyscallError("SO_RCVTIMEO", err)
			}
			s.wait = wait
		}
	}
	for i := range s.messages {
		s.messages[i].header.Namelen = unix.SizeofSockaddrNetlink
	}
	n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.messages[0])), batch, uintptr(flags), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	case unix.ENOBUFS:
		return 0, errLost
	}
	return 0, os.NewSyscallError("recvmmsg", errno)
}

// message returns a message; false unless the kernel, which has port 0, sent it.
func (s *socket) message(i int) (message, bool) {
	if s.messages[i].header.Namelen < unix.SizeofSockaddrNetlink || s.names[i].Pid != 0 {
		return message{}, false
	}
	return parse(s.data[i][:min(int(s.messages[i].n), messageMax)])
}
