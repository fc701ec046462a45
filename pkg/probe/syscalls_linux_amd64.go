package probe

import "golang.org/x/sys/unix"

// legacyCalls are those that newer architectures are without.
func legacyCalls() []call {
	return []call{
		{unix.SYS_OPEN, "open", insideClassCLASS_OPEN},
		{unix.SYS_EPOLL_WAIT, "epoll_wait", insideClassCLASS_POLL},
		{unix.SYS_POLL, "poll", insideClassCLASS_POLL},
		{unix.SYS_SELECT, "select", insideClassCLASS_POLL},
		{unix.SYS_PAUSE, "pause", insideClassCLASS_POLL},
		{unix.SYS_FORK, "fork", insideClassCLASS_OTHER},
		{unix.SYS_VFORK, "vfork", insideClassCLASS_OTHER},
		{unix.SYS_STAT, "stat", insideClassCLASS_OTHER},
		{unix.SYS_UNLINK, "unlink", insideClassCLASS_OTHER},
		{unix.SYS_RENAME, "rename", insideClassCLASS_OTHER},
		{unix.SYS_MKDIR, "mkdir", insideClassCLASS_OTHER},
	}
}
