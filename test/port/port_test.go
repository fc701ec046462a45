//go:build linux

package port

import (
	"net"
	"testing"
)

func TestAReservedPort(t *testing.T) {
	p, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	if c, err := net.Dial("tcp", p.Addr); err == nil {
		_ = c.Close()
		t.Error("somebody listens before anybody does")
	}
	for range 2 {
		l, err := net.Listen("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := net.Listen("tcp", p.Addr); err == nil {
			_ = second.Close()
			t.Error("two listen")
		}
		c, err := net.Dial("tcp", p.Addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		_ = l.Close()
	}
	for range 40_000 { // more ports than a kernel has
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if l.Addr().String() == p.Addr {
			t.Fatal("the kernel gave it to another one")
		}
		_ = l.Close()
	}
}
