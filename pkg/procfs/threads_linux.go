package procfs

import (
	"errors"
	"io"
	"os"
	"strings"
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
		folder := path(pid, "task/"+name+"/")
		stat, err := os.ReadFile(folder + "stat")
		if err != nil {
			continue
		}
		t := Thread{State: stateIn(string(stat))}
		if t.State == "S" || t.State == "D" {
			t.Channel = channel(folder + "wchan")
		}
		threads = append(threads, t)
	}
	return threads, err
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

// channel reads a file of a kernel function: "ep_poll.isra.0" is ep_poll.
func channel(file string) string {
	function, err := os.ReadFile(file)
	if err != nil || string(function) == "0" {
		return ""
	}
	name, _, _ := strings.Cut(string(function), ".")
	return name
}
