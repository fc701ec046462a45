// Package peer reports whether the other end of a local TCP connection belongs to certain processes. A uid proves
// nothing, since ordinary pods run as root also.
package peer

import (
	"errors"
	"net"
	"net/netip"
)

var (
	// ErrStranger means that another process has the socket.
	ErrStranger = errors.New("another process")
	// ErrGone means that the socket was closed, or is on another machine or in another network namespace.
	ErrGone = errors.New("no such socket here")
)

func addrPort(a net.Addr) netip.AddrPort { return unmapped(a.(*net.TCPAddr).AddrPort()) }

// unmapped returns the address of an IPv4 connection of an IPv6 socket as IPv4.
func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
