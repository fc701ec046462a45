package anchor

import (
	"context"
	"net"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/text"
)

// tick is the unit of times in /proc/PID/stat, in ns: USER_HZ is 100 on every architecture
// that Linux is built for here (include/asm-generic/param.h).
const tick = 1e9 / 100

// lookUp reads from /proc what identifies a process; !ok if it is gone.
func lookUp(pid int) (a Anchor, ok bool) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return a, false
	}
	stat, err := p.Stat()
	if err != nil || stat.State == "Z" {
		return a, false
	}
	return Anchor{PID: pid, Start: int64(stat.Starttime) * tick, Name: text.Clean(stat.Comm, 15)}, true
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

// Ask connects to a unix socket, sends nothing, and tells the set who serves it.
func (s *Set) Ask(ctx context.Context, socket string) error {
	c, err := new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(socket, "unix://"))
	if err != nil {
		return err
	}
	defer c.Close()
	s.Serves(socket, Peer(c))
	return nil
}
