//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

type loop struct {
	name  string
	turns int // per batch of about 100,000 instructions
	turn  func()
	ready func() error // before each measurement; may be nil
}

// call makes a system call without Go's scheduler, which would add instructions.
func call(number uintptr, args ...uintptr) uintptr {
	var a [6]uintptr
	copy(a[:], args)
	r, _, _ := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return r
}

func pointer(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// lockedFile is used by the loops only.
const lockedFile = "/tmp/counted"

var buffer [4096]byte

func makeLoops() ([]loop, error) {
	loops, err := plainLoops()
	for _, more := range []func() ([]loop, error){socketLoops, waitingLoops, execLoops} {
		var l []loop
		if err == nil {
			l, err = more()
			loops = append(loops, l...)
		}
	}
	return loops, err
}

func plainLoops() ([]loop, error) {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	file, err := unix.Open(lockedFile, unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	var pipe [2]int
	if err := unix.Pipe(pipe[:]); err != nil {
		return nil, err
	}
	path, here := append([]byte(lockedFile), 0), ^uintptr(99) // AT_FDCWD
	return []loop{
		{"getppid", 80, func() { call(unix.SYS_GETPPID) }, nil},
		{"read of a file", 80, func() { call(unix.SYS_READ, uintptr(zero), pointer(buffer[:]), 8) }, nil},
		{"open and close", 20, func() { call(unix.SYS_CLOSE, call(unix.SYS_OPENAT, here, pointer(path), 0)) }, nil},
		{"stat", 40, func() { call(sysFstatat, here, pointer(path), pointer(buffer[:]), 0) }, nil},
		{"mmap and munmap", 20, func() {
			at := call(unix.SYS_MMAP, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
			call(unix.SYS_MUNMAP, at, 4096)
		}, nil},
		{"sched_yield", 100, func() { call(unix.SYS_SCHED_YIELD) }, nil},
		{"pipe, write and read", 40, func() {
			call(unix.SYS_WRITE, uintptr(pipe[1]), pointer(buffer[:]), 8)
			call(unix.SYS_READ, uintptr(pipe[0]), pointer(buffer[:]), 8)
		}, nil},
		{"flock and unlock", 40, func() {
			call(unix.SYS_FLOCK, uintptr(file), unix.LOCK_EX)
			call(unix.SYS_FLOCK, uintptr(file), unix.LOCK_UN)
		}, nil},
	}, nil
}

// exchange sends and receives eight bytes.
func exchange(from, to int) {
	call(unix.SYS_SENDTO, uintptr(from), pointer(buffer[:]), 8)
	call(unix.SYS_RECVFROM, uintptr(to), pointer(buffer[:]), 8)
}

func socketLoops() ([]loop, error) {
	datagrams, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, err
	}
	tcp, err := listenTCP()
	if err != nil {
		return nil, err
	}
	netlink, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(netlink, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	question := make([]byte, 32) // which link has index 1?
	binary.NativeEndian.PutUint32(question, 32)
	binary.NativeEndian.PutUint16(question[4:], unix.RTM_GETLINK)
	binary.NativeEndian.PutUint16(question[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(question[20:], 1)

	listening, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	address := []byte{unix.AF_UNIX, 0, 0, 'c'} // an abstract address
	call(unix.SYS_BIND, uintptr(listening), pointer(address), uintptr(len(address)))
	if err := unix.Listen(listening, 16); err != nil {
		return nil, err
	}
	return []loop{
		{"unix datagram, send and receive", 20, func() { exchange(datagrams[0], datagrams[1]) }, nil},
		{"TCP, request and answer", 8, func() { exchange(tcp.client, tcp.server); exchange(tcp.server, tcp.client) }, tcp.begin},
		{"netlink, question and answer", 8, func() {
			call(unix.SYS_SENDTO, uintptr(netlink), pointer(question), uintptr(len(question)))
			call(unix.SYS_RECVFROM, uintptr(netlink), pointer(buffer[:]), uintptr(len(buffer)))
		}, nil},
		{"unix connection, from connect to close", 4, func() {
			ours := call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0)
			call(unix.SYS_CONNECT, ours, pointer(address), uintptr(len(address)))
			theirs := call(unix.SYS_ACCEPT4, uintptr(listening))
			call(unix.SYS_CLOSE, ours)
			call(unix.SYS_CLOSE, theirs)
		}, nil},
	}, nil
}

// talk is a TCP connection over lo, new for each measurement, since TCP has state.
type talk struct{ listening, client, server int }

func listenTCP() (*talk, error) {
	if err := loopback(true); err != nil {
		return nil, err
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, err
	}
	t := &talk{s, -1, -1}
	if err := unix.Bind(s, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	return t, errors.Join(unix.Listen(s, 1), t.begin())
}

func (t *talk) begin() error {
	_, _ = unix.Close(t.client), unix.Close(t.server)
	to, err := unix.Getsockname(t.listening)
	if err != nil {
		return err
	}
	if t.client, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err != nil {
		return err
	}
	if err := unix.Connect(t.client, to); err != nil {
		return err
	}
	t.server, _, err = unix.Accept(t.listening)
	return errors.Join(err,
		unix.SetsockoptInt(t.client, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1), unix.SetsockoptInt(t.server, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
}

func beside(turn func()) {
	go func() {
		runtime.LockOSThread()
		for {
			turn()
		}
	}()
}

// waitingLoops make one thread sleep until another wakes it.
func waitingLoops() ([]loop, error) {
	var events [6]int
	for i := range events {
		var err error
		if events[i], err = unix.Eventfd(0, 0); err != nil {
			return nil, err
		}
	}
	poll, err := unix.EpollCreate1(0)
	if err != nil {
		return nil, err
	}
	if err := unix.EpollCtl(poll, unix.EPOLL_CTL_ADD, events[3], &unix.EpollEvent{Events: unix.EPOLLIN}); err != nil {
		return nil, err
	}
	one := binary.NativeEndian.AppendUint64(nil, 1)
	wake := func(fd int) { call(unix.SYS_WRITE, uintptr(fd), pointer(one), 8) }
	sleep := func(fd int) { call(unix.SYS_READ, uintptr(fd), pointer(buffer[:]), 8) }
	answers := func(to, by int) func() {
		own := make([]byte, 8)
		return func() {
			call(unix.SYS_READ, uintptr(to), pointer(own), 8)
			wake(by)
		}
	}
	beside(answers(events[0], events[1]))
	beside(answers(events[2], events[3]))
	var word atomic.Uint32
	at := uintptr(unsafe.Pointer(&word))
	beside(func() {
		for word.Load() == 0 {
			call(unix.SYS_FUTEX, at, futexWait, 0)
		}
		word.Store(0)
		call(unix.SYS_FUTEX, at, futexWake, 1)
	})
	return []loop{
		{"thread switch, there and back", 8, func() { wake(events[0]); sleep(events[1]) }, nil},
		{"epoll, woken by a thread", 8, func() {
			wake(events[2])
			call(unix.SYS_EPOLL_PWAIT, uintptr(poll), pointer(buffer[:]), 1, ^uintptr(0), 0, 8)
			sleep(events[3])
		}, nil},
		{"futex, woken by a thread", 8, func() {
			word.Store(1)
			call(unix.SYS_FUTEX, at, futexWake, 1)
			for word.Load() == 1 {
				call(unix.SYS_FUTEX, at, futexWait, 1)
			}
		}, nil},
	}, nil
}

// Private operations of futex(2).
const (
	futexWait = 0 | 128
	futexWake = 1 | 128
)

const forks = "fork, exec, exit and wait"

func execLoops() ([]loop, error) {
	const program = "/tmp/nothing"
	if err := os.WriteFile(program, shortest(), 0o755); err != nil {
		return nil, err
	}
	attr := &syscall.ProcAttr{Env: make([]string, 35)}
	for i := range attr.Env {
		attr.Env[i] = fmt.Sprintf("SERVICE_%d_PORT=tcp://192.0.2.1:80 and so on and so forth", i)
	}
	return []loop{{forks, 1, func() {
		if pid, err := syscall.ForkExec(program, []string{program}, attr); err == nil {
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	}, nil}}, nil
}

func shortest() []byte { return program([]byte(exits)) }

// program returns an ELF file with code at codeAt: a header and one writable segment.
func program(code []byte) []byte {
	size := uint64(headers + len(code))
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b, _ = binary.Append(b, binary.LittleEndian, struct {
		Type, Machine                        uint16
		Version                              uint32
		Entry, Segments, Sections            uint64
		Flags                                uint32
		Header, Segment, NSegments, Section  uint16
		NSections, Names                     uint16
		Kind, Rights                         uint32
		Offset, Virtual, Physical, File, Mem uint64
		Align                                uint64
	}{
		Type: 2, Machine: machineELF, Version: 1, Entry: codeAt, Segments: 64, Header: 64, Segment: 56, NSegments: 1, Section: 64,
		Kind: 1, Rights: 7, Virtual: base, Physical: base, File: size, Mem: size, Align: 4096,
	})
	return append(b, code...)
}

// Addresses of generated programs.
const (
	base    = 0x400000
	headers = 64 + 56
	codeAt  = base + headers
)
