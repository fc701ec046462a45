// Package peer reports whether the other end of a TCP connection on this machine belongs to
// certain processes: the kernel is asked which socket it is (inet_diag), and the processes'
// descriptors are searched for that socket; Windows says itself whose it is. A uid proves nothing, since ordinary pods are root,
// too, and neither does a process id that somebody sends.
package peer

import "errors"

var (
	// ErrStranger says that the socket is none of the processes'.
	ErrStranger = errors.New("another process")
	// ErrGone says that there is no such socket: it was closed meanwhile, or is not on this
	// machine, or not in our network namespace.
	ErrGone = errors.New("no such socket here")
)
