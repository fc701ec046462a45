package kernel

import "golang.org/x/sys/unix"

// legacyCalls are those that newer architectures are without.
func legacyCalls() []syscall {
	return []syscall{
		{unix.SYS_OPEN, "open", InsideClassCLASS_OPEN},
		{unix.SYS_EPOLL_WAIT, "epoll_wait", InsideClassCLASS_POLL},
		{unix.SYS_POLL, "poll", InsideClassCLASS_POLL},
		{unix.SYS_SELECT, "select", InsideClassCLASS_POLL},
		{unix.SYS_PAUSE, "pause", InsideClassCLASS_POLL},
		{unix.SYS_FORK, "fork", InsideClassCLASS_OTHER},
		{unix.SYS_VFORK, "vfork", InsideClassCLASS_OTHER},
		{unix.SYS_STAT, "stat", InsideClassCLASS_OTHER},
		{unix.SYS_UNLINK, "unlink", InsideClassCLASS_OTHER},
		{unix.SYS_RENAME, "rename", InsideClassCLASS_OTHER},
		{unix.SYS_MKDIR, "mkdir", InsideClassCLASS_OTHER},
	}
}
