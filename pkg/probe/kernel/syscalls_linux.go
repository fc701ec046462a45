package kernel

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/netlink"
)

type syscalls = map[int]string

// brief system calls never wait, and are most of a program's start, so they are ignored early.
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

// calls returns the system calls by class. Those of CLASS_OTHER are only named.
func calls() map[InsideClass]syscalls {
	return map[InsideClass]syscalls{
		InsideClassCLASS_NEVER: {
			unix.SYS_EXIT: "exit", unix.SYS_EXIT_GROUP: "exit_group", unix.SYS_EXECVE: "execve",
			unix.SYS_EXECVEAT: "execveat", unix.SYS_RT_SIGRETURN: "rt_sigreturn",
		},
		InsideClassCLASS_SLEEP: {
			unix.SYS_NANOSLEEP: "nanosleep", unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep",
		},
		InsideClassCLASS_FUTEX: {unix.SYS_FUTEX: "futex"},
		InsideClassCLASS_POLL: {
			unix.SYS_EPOLL_PWAIT: "epoll_pwait", unix.SYS_EPOLL_PWAIT2: "epoll_pwait2",
			unix.SYS_PPOLL: "ppoll", unix.SYS_PSELECT6: "pselect6",
			unix.SYS_RT_SIGTIMEDWAIT: "rt_sigtimedwait", unix.SYS_RT_SIGSUSPEND: "rt_sigsuspend",
			unix.SYS_RESTART_SYSCALL: "restart_syscall",
		},
		InsideClassCLASS_WAIT:       {unix.SYS_WAIT4: "wait4", unix.SYS_WAITID: "waitid"},
		InsideClassCLASS_FLOCK:      {unix.SYS_FLOCK: "flock"},
		InsideClassCLASS_FCNTL:      {unix.SYS_FCNTL: "fcntl"},
		InsideClassCLASS_SENDTO:     {unix.SYS_SENDTO: "sendto"},
		InsideClassCLASS_SENDMSG:    {unix.SYS_SENDMSG: "sendmsg"},
		InsideClassCLASS_RECVFROM:   {unix.SYS_RECVFROM: "recvfrom"},
		InsideClassCLASS_RECVMSG:    {unix.SYS_RECVMSG: "recvmsg"},
		InsideClassCLASS_SETSOCKOPT: {unix.SYS_SETSOCKOPT: "setsockopt"},
		InsideClassCLASS_IOCTL:      {unix.SYS_IOCTL: "ioctl"},
		InsideClassCLASS_READ:       {unix.SYS_READ: "read"},
		InsideClassCLASS_READV:      {unix.SYS_READV: "readv"},
		InsideClassCLASS_WRITE:      {unix.SYS_WRITE: "write"},
		InsideClassCLASS_WRITEV:     {unix.SYS_WRITEV: "writev"},
		InsideClassCLASS_OPEN:       {unix.SYS_OPENAT: "openat", unix.SYS_OPENAT2: "openat2"},
		InsideClassCLASS_CONNECT:    {unix.SYS_CONNECT: "connect"},
		InsideClassCLASS_ACCEPT:     {unix.SYS_ACCEPT: "accept", unix.SYS_ACCEPT4: "accept4"},
		InsideClassCLASS_CLOSE:      {unix.SYS_CLOSE: "close"},
		InsideClassCLASS_SETNS:      {unix.SYS_SETNS: "setns"},
		InsideClassCLASS_UNSHARE:    {unix.SYS_UNSHARE: "unshare"},
		InsideClassCLASS_BPF:        {unix.SYS_BPF: "bpf"},
		InsideClassCLASS_OTHER: {
			unix.SYS_CLONE: "clone", unix.SYS_CLONE3: "clone3",
			unix.SYS_GETDENTS64: "getdents64",
			unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_STATX: "statx", unix.SYS_FACCESSAT: "faccessat",
			unix.SYS_FACCESSAT2: "faccessat2", unix.SYS_READLINKAT: "readlinkat",
			unix.SYS_INOTIFY_ADD_WATCH: "inotify_add_watch",
			unix.SYS_SYMLINKAT:         "symlinkat", unix.SYS_LINKAT: "linkat",
			unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_MKDIRAT: "mkdirat",
			unix.SYS_MMAP: "mmap", unix.SYS_MUNMAP: "munmap", unix.SYS_SCHED_YIELD: "sched_yield",
			unix.SYS_GETSOCKOPT: "getsockopt", unix.SYS_SOCKET: "socket", unix.SYS_BIND: "bind",
		},
		InsideClassCLASS_WORK: {
			unix.SYS_MOUNT: "mount", unix.SYS_UMOUNT2: "umount2", unix.SYS_MOVE_MOUNT: "move_mount",
			unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_SYNC: "sync", unix.SYS_UNLINKAT: "unlinkat",
			unix.SYS_FINIT_MODULE: "finit_module", unix.SYS_INIT_MODULE: "init_module",
		},
	}
}

// texts are reported for slow or failed calls; bit 0 is the first.
func texts() [512]uint8 {
	return byNumber(map[int]uint8{
		unix.SYS_MOUNT:      0b0111, // source, target, type
		unix.SYS_UMOUNT2:    0b0001,
		unix.SYS_MOVE_MOUNT: 0b1010, // source, target
	})
}

func byNumber(all ...map[int]uint8) (table [512]uint8) {
	for _, values := range all {
		for number, value := range values {
			table[number] = value
		}
	}
	return table
}

// paths are the path arguments, from 1, of calls that poll files or make lock files (bpf/misses.h).
func paths() [512]uint8 {
	return byNumber(legacyPaths(), map[int]uint8{
		unix.SYS_OPENAT: 2, unix.SYS_OPENAT2: 2, unix.SYS_NEWFSTATAT: 2, unix.SYS_STATX: 2, unix.SYS_FACCESSAT: 2,
		unix.SYS_FACCESSAT2: 2, unix.SYS_READLINKAT: 2, unix.SYS_INOTIFY_ADD_WATCH: 2,
		unix.SYS_MKDIRAT: 2, unix.SYS_SYMLINKAT: 3, unix.SYS_LINKAT: 4,
	})
}

const lasted = time.Millisecond

func questions() (of [16]uint64) {
	for n := range of {
		of[n] = netlink.Questions(uint8(n))
	}
	return of
}

func classes() (table [512]uint8) {
	for _, number := range brief() {
		table[number] = uint8(InsideClassCLASS_NEVER)
	}
	for _, all := range []map[InsideClass]syscalls{calls(), legacyCalls()} {
		for class, names := range all {
			for number := range names {
				if number < len(table) {
					table[number] = uint8(class)
				}
			}
		}
	}
	return table
}

// SyscallNames returns names by number.
func SyscallNames() map[uint16]string {
	names := map[uint16]string{}
	for _, all := range []map[InsideClass]syscalls{calls(), legacyCalls()} {
		for _, class := range all {
			for number, name := range class {
				names[uint16(number)] = name
			}
		}
	}
	return names
}
