package anchor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"time"

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

// byOption is how those are known that the operator names.
const byOption = "probe.callers"

// seekEvery is how often they are looked for: each look reads a link of every process of the
// node, some 5 µs each. A runtime that was started is known that much later at most.
const seekEvery = 5 * time.Second

// Seek finds the processes whose executable's path patterns name, now and then every few seconds until ctx
// ends. A path alone proves nothing, since every container has its own files: such a process is an anchor if
// it could do anything on the node (CAP_SYS_ADMIN in the initial user namespace). One in a user namespace is
// one only where rootless says so, and its file is the one that lies there on the host.
func (s *Set) Seek(ctx context.Context, patterns []string, rootless bool) {
	if len(patterns) == 0 {
		return
	}
	tick := time.NewTicker(seekEvery)
	defer tick.Stop()
	for {
		s.Name(patterns, rootless)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Name is one round of Seek. Where nobody is found, those that were known stay, as with sockets.
func (s *Set) Name(patterns []string, rootless bool) {
	all, err := procfs.All()
	if err != nil {
		return
	}
	var found []Anchor
	for _, pid := range all {
		file, err := procfs.Executable(pid)
		if err != nil || !slices.ContainsFunc(patterns, func(pattern string) bool { ok, _ := path.Match(pattern, file); return ok }) {
			continue
		}
		a, ok := lookUp(pid)
		user, err := procfs.Namespace(pid, "user")
		switch {
		case !ok || err != nil:
			continue
		case user == procfs.InitialUser:
			ok = mayDoAnything(pid)
		default:
			ok = rootless && isHosts(pid, file)
			a.Rootless = true
		}
		if ok {
			a.How = byOption
			found = append(found, a)
		}
	}
	if len(found) > 0 {
		slices.SortFunc(found, first)
		s.put(byOption, found[:min(len(found), maxNamed)])
	}
}

// first is the order in which there is room for them: who may do anything on the node comes before
// anybody's rootless runtime, and who has been there for longest before who starts many.
func first(a, b Anchor) int {
	rootless := func(a Anchor) int {
		if a.Rootless {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rootless(a), rootless(b)), cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
}

// maxNamed bounds those that one option names: a pattern that means everything.
const maxNamed = 32

func mayDoAnything(pid int) bool {
	var sets [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3, Pid: int32(pid)}
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// isHosts reports whether the process runs the file that has this path on the host. Nobody's
// file system is asked for it: one in user space might never answer.
func isHosts(pid int, file string) bool {
	identity := func(path string) (id [3]uint64, ok bool) {
		var s unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &s)
		return [3]uint64{uint64(s.Dev_major), uint64(s.Dev_minor), s.Ino}, err == nil
	}
	runs, ok := identity(fmt.Sprintf("/proc/%d/exe", pid))
	if !ok {
		return false
	}
	for _, root := range []string{"/proc/1/root", ""} {
		if lies, ok := identity(root + file); ok {
			return lies == runs
		}
	}
	return false
}
