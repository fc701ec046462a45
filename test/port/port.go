//go:build linux

// Package port reserves TCP ports for programs that need a fixed address.
package port

import (
	"fmt"
	"net/netip"
	"os"
	"syscall"
)

// Port is a reserved TCP port that the kernel chose, free at each IPv4 address: an ended connection of 127.0.0.2 with
// its number would keep a program from listening at all addresses. The kernel gives it to no other listener or
// connection, and refuses connections to it while no program listens. A program that knows the number can listen on
// it repeatedly: a bound socket that does not listen does not conflict with SO_REUSEADDR, which Go's listeners set.
type Port struct {
	Addr string // host:port
	fd   int
}

// Reserve reserves a port until Close.
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
	if err := syscall.Bind(p.fd, &syscall.SockaddrInet4{}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	name, err := syscall.Getsockname(p.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	p.Addr = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(name.(*syscall.SockaddrInet4).Port)).String()
	return nil
}

// Close releases the port.
func (p *Port) Close() { _ = syscall.Close(p.fd) }
