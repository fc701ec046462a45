// Package peer reports whether a local TCP connection's other end belongs to given processes. A uid proves nothing:
// pods run as root.
package peer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"
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

const acceptPace = 5 * time.Millisecond

// Accepted waits until a process accepted our unused connection, or ctx ends: the kernel also connects to stopped
// listeners. It returns true if the kernel cannot tell (other machine or network namespace).
func Accepted(ctx context.Context, c net.Conn) bool {
	tick := time.NewTicker(acceptPace)
	defer tick.Stop()
	for waiting(c) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
