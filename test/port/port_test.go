//go:build linux

package port

import (
	"net"
	"strconv"
	"testing"
)

// A reserved port is no connection's at another address of the host, and a program can listen on it at all of them.
func TestAReservedPortIsFreeAtEachAddress(t *testing.T) {
	p, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	_, number, _ := net.SplitHostPort(p.Addr)
	at, _ := strconv.Atoi(number)
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2), Port: at}}
	if c, err := from.Dial("tcp", other.Addr().String()); err == nil {
		_ = c.Close()
		t.Errorf("a connection from %s got the port", from.LocalAddr)
	}
	all, err := net.Listen("tcp", ":"+number)
	if err != nil {
		t.Fatal(err)
	}
	_ = all.Close()
}
