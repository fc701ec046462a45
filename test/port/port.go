//go:build linux

// Package port reserves TCP ports for programs that are told where to listen.
package port

import (
	"fmt"
	"net/netip"
	"os"
	"syscall"
)

// Port is a TCP port of 127.0.0.1 that the kernel chose. While it is reserved the kernel gives
// it to nobody else, neither to a listener nor to a connection, and who connects to it is
// refused unless somebody listens. Who knows its number can listen on it, as often as it likes:
// a socket that is bound and does not listen is in the way of no socket with SO_REUSEADDR,
// which is what Go's listeners are.
type Port struct {
	Addr string // host:port
	fd   int
}

// Reserve reserves a port until it is closed.
func Reserve() (*Port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("reserve a port: %w", os.NewSyscallError("socket", err))
	}
	p := &Port{fd: fd}
	if err := p.bind(); err != nil {
		p.Close()
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	return p, nil
}

func (p *Port) bind() error {
	if err := syscall.SetsockoptInt(p.fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	loopback := [4]byte{127, 0, 0, 1}
	if err := syscall.Bind(p.fd, &syscall.SockaddrInet4{Addr: loopback}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(p.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	p.Addr = netip.AddrPortFrom(netip.AddrFrom4(loopback), uint16(name.(*syscall.SockaddrInet4).Port)).String()
	return nil
}

// Close gives the port back.
func (p *Port) Close() { _ = syscall.Close(p.fd) }
