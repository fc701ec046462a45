package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

func TestAnIPv4ConnectionIsFoundByEitherKindOfSocket(t *testing.T) {
	l := harness.Must(net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	other := exec.Command("sleep", "60")
	harness.Start(t, other)
	for name, socket := range map[string]struct {
		family int
		to     unix.Sockaddr
	}{
		"IPv4":         {unix.AF_INET, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}},
		"IPv6, mapped": {unix.AF_INET6, &unix.SockaddrInet6{Port: port, Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			fd, err := unix.Socket(socket.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if errors.Is(err, unix.EAFNOSUPPORT) {
				t.Skip("this kernel has no such sockets")
			}
			harness.Check(t, err)
			defer unix.Close(fd)
			harness.Check(t, unix.Connect(fd, socket.to))
			c := harness.Must(l.AcceptTCP())(t)
			defer c.Close()
			if err := Owned([]*net.TCPConn{c}, []int{os.Getpid()})[0]; err != nil {
				t.Errorf("our own connection: %v", err)
			}
			if err := Owned([]*net.TCPConn{c}, []int{other.Process.Pid})[0]; !errors.Is(err, ErrStranger) {
				t.Errorf("another process' connection: %v", err)
			}
		})
	}
}

func TestWhoHadThePortBeforeIsGone(t *testing.T) {
	l := harness.Must(net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer l.Close()
	pair := func(d net.Dialer) (client, server *net.TCPConn) {
		t.Helper()
		c := harness.Must(d.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { _ = c.Close() })
		s := harness.Must(l.AcceptTCP())(t)
		t.Cleanup(func() { _ = s.Close() })
		return c.(*net.TCPConn), s
	}
	// No other program uses this address, so its port stays free.
	pid := os.Getpid()
	before, theirs := pair(net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1+byte(pid>>16), byte(pid>>8), byte(pid))}})
	from := before.LocalAddr()
	if _, err := before.Write([]byte("forged")); err != nil {
		t.Fatal(err)
	}
	harness.Check(t, errors.Join(before.SetLinger(0), before.Close()))
	_, ours := pair(net.Dialer{LocalAddr: from})
	errs := Owned([]*net.TCPConn{theirs, ours}, []int{os.Getpid()})
	if !errors.Is(errs[0], ErrGone) {
		t.Errorf("the one that was broken off: %v", errs[0])
	}
	if errs[1] != nil {
		t.Errorf("the one that is there: %v", errs[1])
	}
}

func TestAConnectionThatNobodyAccepts(t *testing.T) {
	for network, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0"} {
		t.Run(network, func(t *testing.T) {
			l := harness.Must(net.Listen(network, address))(t)
			defer l.Close()
			c := harness.Must(net.Dial(network, l.Addr().String()))(t)
			defer c.Close()
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if Accepted(short, c) {
				t.Error("nobody has accepted it")
			}
			served := harness.Must(l.Accept())(t)
			if !Accepted(t.Context(), c) {
				t.Error("somebody has accepted it")
			}
			// A process that accepted and hung up counts also.
			_ = served.Close()
			if !Accepted(t.Context(), c) {
				t.Error("somebody had accepted it")
			}
		})
	}
}

func inodeOf(t *testing.T, c net.Conn) uint64 {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	harness.Check(t, err)
	var own unix.Stat_t
	harness.Check(t, raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &own) }))
	return own.Ino
}

func TestWhereAStreamLeadsTo(t *testing.T) {
	for network, address := range map[string]string{
		"unix": filepath.Join(t.TempDir(), "s"), "unix, no file": "@cniscope-test-" + strings.ReplaceAll(t.TempDir(), "/", "-"), "tcp": "127.0.0.1:0",
	} {
		for _, accepted := range []bool{false, true} {
			name, _, _ := strings.Cut(network, ",")
			l := harness.Must(net.Listen(name, address))(t)
			c := harness.Must(net.Dial(name, l.Addr().String()))(t)
			if accepted {
				other := harness.Must(l.Accept())(t)
				defer other.Close()
			}
			inode := inodeOf(t, c)
			want := map[uint64]Remote{inode: {name, l.Addr().String()}}
			if got, err := Remotes([]uint64{inode}); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s, accepted: %v: it leads to %+v (%v), want %+v", network, accepted, got, err, want)
			}
			c.Close()
			l.Close()
		}
	}
}

func TestAListOfSocketsIsCut(t *testing.T) {
	const sockets = 500 // more than one message of the kernel
	for range sockets {
		l := harness.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
		defer l.Close()
	}
	request := make([]byte, requestSize)
	request[0], request[1] = unix.AF_INET, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(request[4:], 1<<tcpListen)
	for most, cut := range map[int]bool{sockets / 2: true, listMax: false} {
		seen := 0
		err := list(request, most, func([]byte) error { seen++; return nil })
		if errors.Is(err, errCut) != cut || err != nil && !cut || cut && seen != most || !cut && seen < sockets {
			t.Errorf("of %d at most it lists %d: %v", most, seen, err)
		}
	}
}
