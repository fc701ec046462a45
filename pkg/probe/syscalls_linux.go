package probe

import "golang.org/x/sys/unix"

// call is a system call the kernel side knows by its class.
type call struct {
	number int
	name   string
	class  insideClass
}

// brief are system calls that never wait, and are left out early for that reason: most of
// what a program does when it starts. Those that not every architecture has are too few
// to matter.
func brief() []int {
	return []int{
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_SIGALTSTACK, unix.SYS_TGKILL,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID,
		unix.SYS_SET_TID_ADDRESS, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_PRCTL, unix.SYS_PRLIMIT64,
		unix.SYS_SCHED_GETAFFINITY, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM, unix.SYS_UNAME,
		unix.SYS_BRK, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EVENTFD2, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
	}
}

// calls are those that the kernel side treats in a way of their own; every other one is
// only told of if it lasted. Those that not every architecture has are in legacyCalls.
func calls() []call {
	return append(legacyCalls(), []call{
		{unix.SYS_EXIT, "exit", insideClassCLASS_NEVER},
		{unix.SYS_EXIT_GROUP, "exit_group", insideClassCLASS_NEVER},
		{unix.SYS_EXECVE, "execve", insideClassCLASS_NEVER},
		{unix.SYS_EXECVEAT, "execveat", insideClassCLASS_NEVER},
		{unix.SYS_RT_SIGRETURN, "rt_sigreturn", insideClassCLASS_NEVER},

		{unix.SYS_NANOSLEEP, "nanosleep", insideClassCLASS_SLEEP},
		{unix.SYS_CLOCK_NANOSLEEP, "clock_nanosleep", insideClassCLASS_SLEEP},
		{unix.SYS_FUTEX, "futex", insideClassCLASS_FUTEX},
		{unix.SYS_EPOLL_PWAIT, "epoll_pwait", insideClassCLASS_POLL},
		{unix.SYS_EPOLL_PWAIT2, "epoll_pwait2", insideClassCLASS_POLL},
		{unix.SYS_PPOLL, "ppoll", insideClassCLASS_POLL},
		{unix.SYS_PSELECT6, "pselect6", insideClassCLASS_POLL},
		{unix.SYS_RT_SIGTIMEDWAIT, "rt_sigtimedwait", insideClassCLASS_POLL},
		{unix.SYS_RT_SIGSUSPEND, "rt_sigsuspend", insideClassCLASS_POLL},
		{unix.SYS_RESTART_SYSCALL, "restart_syscall", insideClassCLASS_POLL},
		{unix.SYS_WAIT4, "wait4", insideClassCLASS_WAIT},
		{unix.SYS_WAITID, "waitid", insideClassCLASS_WAIT},

		{unix.SYS_FLOCK, "flock", insideClassCLASS_FLOCK},
		{unix.SYS_FCNTL, "fcntl", insideClassCLASS_FCNTL},

		{unix.SYS_SENDTO, "sendto", insideClassCLASS_SENDTO},
		{unix.SYS_SENDMSG, "sendmsg", insideClassCLASS_SENDMSG},
		{unix.SYS_RECVFROM, "recvfrom", insideClassCLASS_RECVFROM},
		{unix.SYS_RECVMSG, "recvmsg", insideClassCLASS_RECVMSG},
		{unix.SYS_SETSOCKOPT, "setsockopt", insideClassCLASS_SETSOCKOPT},
		{unix.SYS_IOCTL, "ioctl", insideClassCLASS_IOCTL},

		{unix.SYS_READ, "read", insideClassCLASS_READ},
		{unix.SYS_READV, "readv", insideClassCLASS_READV},
		{unix.SYS_WRITE, "write", insideClassCLASS_WRITE},
		{unix.SYS_WRITEV, "writev", insideClassCLASS_WRITEV},
		{unix.SYS_OPENAT, "openat", insideClassCLASS_OPEN},
		{unix.SYS_OPENAT2, "openat2", insideClassCLASS_OPEN},

		{unix.SYS_CONNECT, "connect", insideClassCLASS_CONNECT},
		{unix.SYS_ACCEPT, "accept", insideClassCLASS_ACCEPT},
		{unix.SYS_ACCEPT4, "accept4", insideClassCLASS_ACCEPT},
		{unix.SYS_CLOSE, "close", insideClassCLASS_CLOSE},

		{unix.SYS_SETNS, "setns", insideClassCLASS_SETNS},
		{unix.SYS_UNSHARE, "unshare", insideClassCLASS_UNSHARE},

		{unix.SYS_CLONE, "clone", insideClassCLASS_OTHER},
		{unix.SYS_CLONE3, "clone3", insideClassCLASS_OTHER},
		{unix.SYS_FSYNC, "fsync", insideClassCLASS_OTHER},
		{unix.SYS_FDATASYNC, "fdatasync", insideClassCLASS_OTHER},
		{unix.SYS_SYNC, "sync", insideClassCLASS_OTHER},
		{unix.SYS_GETDENTS64, "getdents64", insideClassCLASS_OTHER},
		{unix.SYS_NEWFSTATAT, "newfstatat", insideClassCLASS_OTHER},
		{unix.SYS_STATX, "statx", insideClassCLASS_OTHER},
		{unix.SYS_UNLINKAT, "unlinkat", insideClassCLASS_OTHER},
		{unix.SYS_RENAMEAT, "renameat", insideClassCLASS_OTHER},
		{unix.SYS_RENAMEAT2, "renameat2", insideClassCLASS_OTHER},
		{unix.SYS_MKDIRAT, "mkdirat", insideClassCLASS_OTHER},
		{unix.SYS_MOUNT, "mount", insideClassCLASS_OTHER},
		{unix.SYS_UMOUNT2, "umount2", insideClassCLASS_OTHER},
		{unix.SYS_MMAP, "mmap", insideClassCLASS_OTHER},
		{unix.SYS_MUNMAP, "munmap", insideClassCLASS_OTHER},
		{unix.SYS_SCHED_YIELD, "sched_yield", insideClassCLASS_OTHER},
		{unix.SYS_GETSOCKOPT, "getsockopt", insideClassCLASS_OTHER},
		{unix.SYS_SOCKET, "socket", insideClassCLASS_OTHER},
		{unix.SYS_BIND, "bind", insideClassCLASS_OTHER},
		{unix.SYS_BPF, "bpf", insideClassCLASS_OTHER},
		{unix.SYS_FINIT_MODULE, "finit_module", insideClassCLASS_OTHER},
		{unix.SYS_INIT_MODULE, "init_module", insideClassCLASS_OTHER},
	}...)
}
