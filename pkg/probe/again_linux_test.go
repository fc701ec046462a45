package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/test/harness"
)

func init() {
	// A plugin that asks by a second connect whether it is connected.
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

// A connect that a signal interrupts goes on.
func TestAnInterruptedConnectIsOne(t *testing.T) {
	for _, way := range []string{"", "system-calls"} {
		fd := harness.Must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
		harness.Check(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
		harness.Check(t, unix.Listen(fd, 0))
		at := harness.Must(unix.Getsockname(fd))(t).(*unix.SockaddrInet4)
		first := harness.Must(unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0))(t)
		harness.Check(t, unix.Connect(first, at)) // the queue is full
		cmd := acting(t, "again", netip.AddrPortFrom(netip.AddrFrom4(at.Addr), uint16(at.Port)).String())
		o := observeProbe(t, Options{Way: way}, func(*Probe, *observed) {
			harness.Check(t, cmd.Start())
			threadIs(t, cmd.Process.Pid, "syscall", fmt.Sprintf("%d 0x", unix.SYS_CONNECT))
			harness.Check(t, cmd.Process.Signal(unix.SIGSTOP))
			threadIs(t, cmd.Process.Pid, "stat", ") T ")
			harness.Check(t, cmd.Process.Signal(unix.SIGCONT))
			for range 2 {
				one, _, err := unix.Accept(fd)
				harness.Check(t, err)
				harness.Check(t, unix.Close(one))
			}
			harness.Check(t, cmd.Wait())
		})
		harness.Check(t, errors.Join(unix.Close(fd), unix.Close(first)))
		if connects := all[*event.Connect](o); len(connects) != 1 || connects[0].Error != "" {
			t.Errorf("%q: %s", way, printed(o, connects))
		}
	}
}

// threadIs waits until a file of a thread of the process contains text.
func threadIs(t *testing.T, pid int, file, text string) {
	t.Helper()
	harness.Eventually(t, func() error {
		files := harness.Must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*/%s", pid, file)))(t)
		for _, f := range files {
			if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), text) {
				return nil
			}
		}
		return fmt.Errorf("%d threads have no %q in %s", len(files), text, file)
	})
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
