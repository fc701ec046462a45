package peer

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// An IPv4 connection may be made by an IPv6 socket, as many runtimes do (C, Java): the kernel
// tells of it by mapped addresses. Before, such a client was never found.
func TestAnIPv4ConnectionIsFoundByEitherKindOfSocket(t *testing.T) {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = other.Process.Kill()
		_ = other.Wait()
	}()
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
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			if err := unix.Connect(fd, socket.to); err != nil {
				t.Fatal(err)
			}
			c, err := l.AcceptTCP()
			if err != nil {
				t.Fatal(err)
			}
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
