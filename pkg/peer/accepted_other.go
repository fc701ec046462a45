//go:build !linux

package peer

import "net"

func waiting(net.Conn) bool { return false }

// UID is unsupported on this platform.
func UID(*net.TCPConn) (uid uint32, ok bool) { return 0, false }
