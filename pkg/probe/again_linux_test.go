package probe

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func init() {
	// A plugin that asks by a second connect whether it is connected,.
	acts["again"] = func(address string) error {
		to := netip.MustParseAddrPort(address)
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		at := &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}
		if err := unix.Connect(fd, at); err != nil {
			return err
		}
		if err := unix.Connect(fd, at); err != unix.EISCONN {
			return err
		}
		_, err = unix.Read(fd, make([]byte, 1))
		return err
	}
}

func TestASecondConnectIsNoOtherConnection(t *testing.T) {
	for _, way := range []string{"", "system-calls"} {
		l := harness.Must(net.Listen("tcp4", "127.0.0.1:0"))(t)
		cmd := acting(t, "again", l.Addr().String())
		o := observeProbe(t, Options{Way: way}, func(_ *Probe, o *observed) {
			o.everyAccept = true
			harness.Check(t, cmd.Start())
			time.Sleep(300 * time.Millisecond)
			c := harness.Must(l.Accept())(t)
			time.Sleep(50 * time.Millisecond)
			c.Close()
			harness.Check(t, cmd.Wait())
		})
		l.Close()
		connects, accepts, closes := all[*event.Connect](o), all[*event.Accept](o), all[*event.Close](o)
		once := len(connects) == 1 && len(accepts) == 1 && len(closes) == 1
		if !once || connects[0].Error != "" || accepts[0].Socket != connects[0].Socket {
			t.Errorf("%q: %s%s%s", way, printed(o, connects), printed(o, accepts), printed(o, closes))
		}
	}
}
