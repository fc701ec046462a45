package peer

import (
	"context"
	"net"
	"time"
)

// acceptPace is the interval between queries of the kernel.
const acceptPace = 5 * time.Millisecond

// Accepted waits until a process accepted our connection, over which nothing is sent, or ctx ends. The kernel
// connects to a listener even if that process is stopped or never accepts. It returns true if the kernel cannot tell,
// such as for a TCP connection to another machine or network namespace.
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
