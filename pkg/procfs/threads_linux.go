package procfs

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Thread is what a thread was doing.
type Thread struct {
	State   string // proc(5): "R", "S", "D", "T", "t", "Z"…
	Channel string // the kernel function that it sleeps in, without suffixes of compilers; empty if that is not known
}

// Threads reads what up to most threads of a process do, each at its own instant. One that ends meanwhile is
// left out. It takes some 10 µs a thread; channels of another user's process take CAP_SYS_PTRACE.
func Threads(pid, most int) ([]Thread, error) {
	dir, err := os.Open(path(pid, "task"))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	threads := make([]Thread, 0, len(names))
	for _, name := range names {
		t := Thread{State: stateIn(lineAt(dir, name+"/stat"))}
		if t.State == "" {
			continue
		}
		if t.State == "S" || t.State == "D" {
			t.Channel = channelIn(lineAt(dir, name+"/wchan"))
		}
		threads = append(threads, t)
	}
	return threads, err
}

// Ended reports whether all threads of a process have ended, and only its parent has not asked for it yet. The first
// thread may end before the others. Threads that are too many to be looked at are taken to run.
func Ended(pid int) bool {
	if s, err := StatOf(pid); err != nil || !s.Zombie() {
		return err != nil && Gone(err)
	}
	const most = 64
	threads, err := Threads(pid, most)
	return Gone(err) || err == nil && len(threads) < most &&
		!slices.ContainsFunc(threads, func(t Thread) bool { return t.State != "Z" && t.State != "X" })
}

// stateIn finds the state in a line of stat: it follows the name, which may hold anything.
func stateIn(stat string) string {
	_, after := cutLast(stat, ") ")
	return after[:min(1, len(after))]
}

func cutLast(s, sep string) (before, after string) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):]
	}
	return s, ""
}

// channelIn is the kernel's function in a file of that: "ep_poll.isra.0" is ep_poll.
func channelIn(wchan string) string {
	name, _, _ := strings.Cut(wchan, ".")
	if name == "0" {
		return ""
	}
	return name
}

// lineAt reads a short file below a folder of /proc, in three system calls; empty if it cannot be read.
func lineAt(dir *os.File, name string) string {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var line [1024]byte // that of stat has some 350 bytes at the most
	n, _ := unix.Read(fd, line[:])
	return string(line[:max(n, 0)])
}
