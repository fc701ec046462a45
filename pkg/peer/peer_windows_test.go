package peer

import (
	"errors"
	"net"
	"os"
	"testing"

	"github.com/cniscope/cniscope/test/harness"
)

func TestWindowsSaysWhoseAConnectionIs(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Logf("%s: %v", address, err)
			continue
		}
		defer l.Close()
		c := harness.Must(net.Dial("tcp", l.Addr().String()))(t)
		defer c.Close()
		accepted := harness.Must(l.Accept())(t)
		defer accepted.Close()
		conns := []*net.TCPConn{accepted.(*net.TCPConn)}
		if err := Owned(conns, []int{4, os.Getpid()})[0]; err != nil {
			t.Errorf("%s, ours: %v", address, err)
		}
		if err := Owned(conns, []int{4})[0]; !errors.Is(err, ErrStranger) {
			t.Errorf("%s, another's: %v", address, err)
		}
	}
}
