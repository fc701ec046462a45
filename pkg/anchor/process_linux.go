package anchor

import (
	"context"
	"net"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// lookUp identifies the process that has a PID now; ok is false if there is none.
func lookUp(pid int) (a Anchor, ok bool) {
	s, err := procfs.StatOf(pid)
	if err != nil || s.Zombie() {
		return a, false
	}
	return Anchor{PID: pid, Start: s.Start, Name: text.Clean(s.Name, 15)}, true
}

// Peer is the process at the other end of a unix socket: who called listen(2) or, of a pair,
// socketpair(2). 0 if that is unknown, or in a PID namespace that we do not see.
func Peer(c net.Conn) int {
	socket, ok := c.(*net.UnixConn)
	if !ok {
		return 0
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0
	}
	var pid int
	_ = raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	return pid
}

// Ask connects to a unix socket, sends nothing, and adds the process that serves it.
func (s *Set) Ask(ctx context.Context, socket string) error {
	c, err := new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(socket, "unix://"))
	if err != nil {
		return err
	}
	defer c.Close()
	s.Serves(socket, Peer(c))
	return nil
}
