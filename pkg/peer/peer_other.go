//go:build !linux && !windows

package peer

import (
	"errors"
	"net"
)

// Owned is unsupported on this platform.
func Owned(conns []*net.TCPConn, _ []int) []error {
	errs := make([]error, len(conns))
	for i := range errs {
		errs[i] = errors.ErrUnsupported
	}
	return errs
}
