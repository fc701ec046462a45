package peer

import (
	"context"
	"net"
	"time"
)

// acceptPace is how often the kernel is asked whether a connection has been accepted.
const acceptPace = 5 * time.Millisecond

// Accepted waits until somebody has accepted a connection of ours, over which nothing is sent, or ctx ends:
// the kernel connects us to whoever listens, also if that process is stopped or never accepts. It returns true
// also where that cannot be told, as of a TCP connection to another machine or network namespace.
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
