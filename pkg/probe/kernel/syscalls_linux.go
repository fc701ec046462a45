package kernel

import "golang.org/x/sys/unix"

// syscall is one that the kernel side knows by its class.
type syscall struct {
	number int
	name   string
	class  InsideClass
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
func calls() []syscall {
	return append(legacyCalls(), []syscall{
		{unix.SYS_EXIT, "exit", InsideClassCLASS_NEVER},
		{unix.SYS_EXIT_GROUP, "exit_group", InsideClassCLASS_NEVER},
		{unix.SYS_EXECVE, "execve", InsideClassCLASS_NEVER},
		{unix.SYS_EXECVEAT, "execveat", InsideClassCLASS_NEVER},
		{unix.SYS_RT_SIGRETURN, "rt_sigreturn", InsideClassCLASS_NEVER},

		{unix.SYS_NANOSLEEP, "nanosleep", InsideClassCLASS_SLEEP},
		{unix.SYS_CLOCK_NANOSLEEP, "clock_nanosleep", InsideClassCLASS_SLEEP},
		{unix.SYS_FUTEX, "futex", InsideClassCLASS_FUTEX},
		{unix.SYS_EPOLL_PWAIT, "epoll_pwait", InsideClassCLASS_POLL},
		{unix.SYS_EPOLL_PWAIT2, "epoll_pwait2", InsideClassCLASS_POLL},
		{unix.SYS_PPOLL, "ppoll", InsideClassCLASS_POLL},
		{unix.SYS_PSELECT6, "pselect6", InsideClassCLASS_POLL},
		{unix.SYS_RT_SIGTIMEDWAIT, "rt_sigtimedwait", InsideClassCLASS_POLL},
		{unix.SYS_RT_SIGSUSPEND, "rt_sigsuspend", InsideClassCLASS_POLL},
		{unix.SYS_RESTART_SYSCALL, "restart_syscall", InsideClassCLASS_POLL},
		{unix.SYS_WAIT4, "wait4", InsideClassCLASS_WAIT},
		{unix.SYS_WAITID, "waitid", InsideClassCLASS_WAIT},

		{unix.SYS_FLOCK, "flock", InsideClassCLASS_FLOCK},
		{unix.SYS_FCNTL, "fcntl", InsideClassCLASS_FCNTL},

		{unix.SYS_SENDTO, "sendto", InsideClassCLASS_SENDTO},
		{unix.SYS_SENDMSG, "sendmsg", InsideClassCLASS_SENDMSG},
		{unix.SYS_RECVFROM, "recvfrom", InsideClassCLASS_RECVFROM},
		{unix.SYS_RECVMSG, "recvmsg", InsideClassCLASS_RECVMSG},
		{unix.SYS_SETSOCKOPT, "setsockopt", InsideClassCLASS_SETSOCKOPT},
		{unix.SYS_IOCTL, "ioctl", InsideClassCLASS_IOCTL},

		{unix.SYS_READ, "read", InsideClassCLASS_READ},
		{unix.SYS_READV, "readv", InsideClassCLASS_READV},
		{unix.SYS_WRITE, "write", InsideClassCLASS_WRITE},
		{unix.SYS_WRITEV, "writev", InsideClassCLASS_WRITEV},
		{unix.SYS_OPENAT, "openat", InsideClassCLASS_OPEN},
		{unix.SYS_OPENAT2, "openat2", InsideClassCLASS_OPEN},

		{unix.SYS_CONNECT, "connect", InsideClassCLASS_CONNECT},
		{unix.SYS_ACCEPT, "accept", InsideClassCLASS_ACCEPT},
		{unix.SYS_ACCEPT4, "accept4", InsideClassCLASS_ACCEPT},
		{unix.SYS_CLOSE, "close", InsideClassCLASS_CLOSE},

		{unix.SYS_SETNS, "setns", InsideClassCLASS_SETNS},
		{unix.SYS_UNSHARE, "unshare", InsideClassCLASS_UNSHARE},

		{unix.SYS_CLONE, "clone", InsideClassCLASS_OTHER},
		{unix.SYS_CLONE3, "clone3", InsideClassCLASS_OTHER},
		{unix.SYS_FSYNC, "fsync", InsideClassCLASS_OTHER},
		{unix.SYS_FDATASYNC, "fdatasync", InsideClassCLASS_OTHER},
		{unix.SYS_SYNC, "sync", InsideClassCLASS_OTHER},
		{unix.SYS_GETDENTS64, "getdents64", InsideClassCLASS_OTHER},
		{unix.SYS_NEWFSTATAT, "newfstatat", InsideClassCLASS_OTHER},
		{unix.SYS_STATX, "statx", InsideClassCLASS_OTHER},
		{unix.SYS_UNLINKAT, "unlinkat", InsideClassCLASS_OTHER},
		{unix.SYS_RENAMEAT, "renameat", InsideClassCLASS_OTHER},
		{unix.SYS_RENAMEAT2, "renameat2", InsideClassCLASS_OTHER},
		{unix.SYS_MKDIRAT, "mkdirat", InsideClassCLASS_OTHER},
		{unix.SYS_MOUNT, "mount", InsideClassCLASS_OTHER},
		{unix.SYS_UMOUNT2, "umount2", InsideClassCLASS_OTHER},
		{unix.SYS_MOVE_MOUNT, "move_mount", InsideClassCLASS_OTHER},
		{unix.SYS_MMAP, "mmap", InsideClassCLASS_OTHER},
		{unix.SYS_MUNMAP, "munmap", InsideClassCLASS_OTHER},
		{unix.SYS_SCHED_YIELD, "sched_yield", InsideClassCLASS_OTHER},
		{unix.SYS_GETSOCKOPT, "getsockopt", InsideClassCLASS_OTHER},
		{unix.SYS_SOCKET, "socket", InsideClassCLASS_OTHER},
		{unix.SYS_BIND, "bind", InsideClassCLASS_OTHER},
		{unix.SYS_BPF, "bpf", InsideClassCLASS_OTHER},
		{unix.SYS_FINIT_MODULE, "finit_module", InsideClassCLASS_OTHER},
		{unix.SYS_INIT_MODULE, "init_module", InsideClassCLASS_OTHER},
	}...)
}

// texts is the table of which arguments of a system call are texts: bit 0 for the first. Those are
// told where the call lasted or failed.
func texts() (table [512]uint8) {
	for number, which := range map[int]uint8{
		unix.SYS_MOUNT:      0b0111, // source, target, type
		unix.SYS_UMOUNT2:    0b0001,
		unix.SYS_MOVE_MOUNT: 0b1010, // source, target
	} {
		table[number] = which
	}
	return table
}

// classes is the table by which the kernel side knows system calls.
func classes() (table [512]uint8) {
	for _, number := range brief() {
		table[number] = uint8(InsideClassCLASS_NEVER)
	}
	for _, c := range calls() {
		if c.number < len(table) {
			table[c.number] = uint8(c.class)
		}
	}
	return table
}

// SyscallNames are those of the system calls that are treated in a way of their own, by number.
func SyscallNames() map[uint16]string {
	names := map[uint16]string{}
	for _, c := range calls() {
		names[uint16(c.number)] = c.name
	}
	return names
}
