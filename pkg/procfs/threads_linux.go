package procfs

import (
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Thread is the state of a thread.
type Thread struct {
	ID      int
	State   string
	Channel string // kernel function, without compiler suffixes
}

// Threads reads up to most threads. Channel needs CAP_SYS_PTRACE for other users.
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
		if t := threadAt(int(dir.Fd()), name); t.State != "" {
			t.ID, _ = strconv.Atoi(name)
			threads = append(threads, t)
		}
	}
	return threads, err
}

// FirstThread reads a process's first thread; empty if it is gone.
func FirstThread(pid int) Thread {
	return threadAt(unix.AT_FDCWD, path(pid, "task/"+strconv.Itoa(pid)))
}

func threadAt(dir int, name string) Thread {
	t := Thread{State: stateIn(lineAt(dir, name+"/stat"))}
	if t.State == "S" || t.State == "D" {
		t.Channel = channelIn(lineAt(dir, name+"/wchan"))
	}
	return t
}

// Ended reports whether all threads exited. Those beyond the limit count as running.
func Ended(pid int) bool {
	if s, err := StatOf(pid); err != nil || !s.Zombie() {
		return err != nil && Gone(err)
	}
	const most = 64
	threads, err := Threads(pid, most)
	return Gone(err) || err == nil && len(threads) < most &&
		!slices.ContainsFunc(threads, func(t Thread) bool { return t.State != "Z" && t.State != "X" })
}

// stateIn skips the name, which has arbitrary bytes.
func stateIn(stat string) string {
	end := strings.LastIndex(stat, ") ")
	if end < 0 {
		return ""
	}
	after := stat[end+2:]
	return after[:min(1, len(after))]
}

// channelIn cuts compiler suffixes: "ep_poll.isra.0" is ep_poll.
func channelIn(wchan string) string {
	name, _, _ := strings.Cut(wchan, ".")
	if name == "0" {
		return ""
	}
	return name
}

// lineAt reads a short file in three system calls, or returns "".
func lineAt(dir int, name string) string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	var line [1024]byte // stat has up to 350 bytes
	n, _ := unix.Read(fd, line[:])
	return string(line[:max(n, 0)])
}
