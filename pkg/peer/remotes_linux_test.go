package peer

import (
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

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
