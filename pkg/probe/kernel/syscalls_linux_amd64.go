package kernel

import "golang.org/x/sys/unix"

func legacyCalls() map[InsideClass]syscalls {
	return map[InsideClass]syscalls{
		InsideClassCLASS_OPEN: {unix.SYS_OPEN: "open"},
		InsideClassCLASS_POLL: {
			unix.SYS_EPOLL_WAIT: "epoll_wait", unix.SYS_POLL: "poll", unix.SYS_SELECT: "select",
			unix.SYS_PAUSE: "pause",
		},
		InsideClassCLASS_OTHER: {
			unix.SYS_FORK: "fork", unix.SYS_VFORK: "vfork", unix.SYS_STAT: "stat", unix.SYS_LSTAT: "lstat",
			unix.SYS_ACCESS: "access", unix.SYS_READLINK: "readlink", unix.SYS_SYMLINK: "symlink", unix.SYS_LINK: "link",
			unix.SYS_RENAME: "rename", unix.SYS_MKDIR: "mkdir",
		},
		InsideClassCLASS_WORK: {unix.SYS_UNLINK: "unlink"},
	}
}

func legacyTimeouts() map[int]uint8 {
	return map[int]uint8{unix.SYS_EPOLL_WAIT: inMilliseconds + 3, unix.SYS_POLL: inMilliseconds + 2, unix.SYS_SELECT: asTimeval + 4}
}

func legacyPaths() map[int]uint8 {
	return map[int]uint8{
		unix.SYS_OPEN: 1, unix.SYS_STAT: 1, unix.SYS_LSTAT: 1, unix.SYS_ACCESS: 1, unix.SYS_READLINK: 1,
		unix.SYS_MKDIR: 1, unix.SYS_SYMLINK: 2, unix.SYS_LINK: 2,
	}
}
