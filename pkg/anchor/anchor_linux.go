package anchor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

func lookUp(pid int) (a Anchor, ok bool) {
	s, err := procfs.StatOf(pid)
	if err != nil || s.Zombie() {
		return a, false
	}
	return Anchor{PID: pid, Start: s.Start, Name: text.Clean(s.Name, 15)}, true
}

// Peer returns the PID that called listen(2), or socketpair(2), for the other end; 0 if invisible.
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

// Ask adds the process that serves a unix socket.
func (s *Set) Ask(ctx context.Context, socket string) error {
	c, err := new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(socket, "unix://"))
	if err != nil {
		return err
	}
	defer c.Close()
	s.Serves(socket, Peer(c))
	return nil
}

// Name scans once for processes whose executable matches patterns. If it finds none, the previous ones stay.
//
// A path in a container proves nothing: an anchor also needs CAP_SYS_ADMIN in the initial user namespace or, if
// rootless, the host's file.
func (s *Set) Name(patterns []string, rootless bool) {
	all, err := procfs.All()
	if err != nil {
		return
	}
	var found []Anchor
	for _, pid := range all {
		file, err := procfs.Executable(pid)
		matches := func(pattern string) bool { ok, _ := path.Match(pattern, file); return ok }
		if err != nil || !slices.ContainsFunc(patterns, matches) {
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

// first puts rootless processes last: any user can start many.
func first(a, b Anchor) int {
	rootless := func(a Anchor) int {
		if a.Rootless {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rootless(a), rootless(b)), cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
}

// Privileged reports whether a process has CAP_SYS_ADMIN in the initial user namespace.
func Privileged(pid int) bool {
	user, err := procfs.Namespace(pid, "user")
	return err == nil && user == procfs.InitialUser && mayDoAnything(pid)
}

func mayDoAnything(pid int) bool {
	var sets [2]unix.CapUserData
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3, Pid: int32(pid)}
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// isHosts uses AT_STATX_DONT_SYNC, not to block in user-space file systems.
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
