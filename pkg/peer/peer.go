// Package peer reports whether the other end of a local TCP connection belongs to certain processes. On Linux it asks
// the kernel for the socket (inet_diag) and looks for it in the processes' descriptors; Windows names the owner. A
// uid proves nothing, since ordinary pods also run as root, and a sent process id may be forged.
package peer

import "errors"

var (
	// ErrStranger means that the socket belongs to another process.
	ErrStranger = errors.New("another process")
	// ErrGone means that there is no such socket: it was closed, or is on another machine or in another network
	// namespace.
	ErrGone = errors.New("no such socket here")
)
