//go:build !linux

package peer

import "net"

// waiting cannot be determined on this platform.
func waiting(net.Conn) bool { return false }
