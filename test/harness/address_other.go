//go:build !linux

package harness

import (
	"net"
	"testing"
)

// Address returns a host:port of loopback that is free at the moment.
func Address(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Check(t, err)
	defer l.Close()
	return l.Addr().String()
}
