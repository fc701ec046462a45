// Package peer reports whether a local TCP connection's other end belongs to given processes. A uid proves nothing:
// pods run as root.
package peer

import (
	"errors"
	"net"
	"net/netip"
)

var (
	// ErrStranger means that another process has the socket.
	ErrStranger = errors.New("another process")
	// ErrGone means a closed socket, or one of another machine or network namespace.
	ErrGone = errors.New("no such socket here")
)

func addrPort(a net.Addr) netip.AddrPort { return unmapped(a.(*net.TCPAddr).AddrPort()) }

func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
