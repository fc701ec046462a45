package probe

import (
	"fmt"
	"net/netip"
	"testing"

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
		fmt.Println("connected")
		_, err = unix.Read(fd, make([]byte, 1))
		return err
	}
}

func TestASecondConnectIsNoOtherConnection(t *testing.T) {
	for _, way := range []string{"", "system-calls"} {
		s := serve(t, "tcp", "127.0.0.1:0", false)
		cmd := acting(t, "again", s.address)
		out := harness.Must(cmd.StdoutPipe())(t)
		o := observeProbe(t, Options{Way: way}, func(_ *Probe, o *observed) {
			o.agents = []int{s.pid}
			harness.Check(t, cmd.Start())
			_, err := out.Read(make([]byte, 1))
			harness.Check(t, err)
			s.does(t, "accept")
			s.does(t, "answer")
			harness.Check(t, cmd.Wait())
		})
		connects, accepts, closes := all[*event.Connect](o), all[*event.Accept](o), all[*event.Close](o)
		once := len(connects) == 1 && len(accepts) == 1 && len(closes) == 1
		if !once || connects[0].Error != "" || accepts[0].Socket != connects[0].Socket {
			t.Errorf("%q: %s%s%s", way, printed(o, connects), printed(o, accepts), printed(o, closes))
		}
	}
}
