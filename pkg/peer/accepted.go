package peer

import (
	"context"
	"net"
	"time"
)

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
