package peer

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inodeOf is the inode of a connection's socket.
func inodeOf(t *testing.T, c net.Conn) uint64 {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var own unix.Stat_t
	if err := raw.Control(func(fd uintptr) { err = unix.Fstat(int(fd), &own) }); err != nil {
		t.Fatal(err)
	}
	return own.Ino
}

// Where a connection leads to is known also while nobody has accepted it.
func TestWhereAStreamLeadsTo(t *testing.T) {
	for network, address := range map[string]string{
		"unix": filepath.Join(t.TempDir(), "s"), "unix, no file": "@cniscope-test-" + strings.ReplaceAll(t.TempDir(), "/", "-"), "tcp": "127.0.0.1:0",
	} {
		for _, accepted := range []bool{false, true} {
			name, _, _ := strings.Cut(network, ",")
			l, err := net.Listen(name, address)
			if err != nil {
				t.Fatal(err)
			}
			c, err := net.Dial(name, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if accepted {
				other, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
			}
			all, err := Remotes()
			if err != nil {
				t.Fatal(err)
			}
			if got, want := all[inodeOf(t, c)], (Remote{name, l.Addr().String()}); got != want {
				t.Errorf("%s, accepted: %v: it leads to %+v, want %+v", network, accepted, got, want)
			}
			c.Close()
			l.Close()
		}
	}
}
