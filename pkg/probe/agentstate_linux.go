package probe

import (
	"path"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// state asks the kernel how a server does.
func (k *agent) state() *event.Agent {
	s := &event.Agent{Process: processKey(k.key), PID: k.key.Pid, Name: k.name}
	s.Channel = procfs.Wchan(int(k.key.Pid))
	if stat, err := procfs.StatOf(int(k.key.Pid)); err == nil {
		s.CPU = stat.CPU
	}
	return s
}

// processOf is the key of a process, exact to a tick, as /proc has it; empty if it is
// gone.
func processOf(pid uint32) event.Process {
	s, err := procfs.StatOf(int(pid))
	if err != nil || s.Zombie() {
		return ""
	}
	return processKey(taskKey{Tgid: pid, Start: uint64(s.Start), Pid: pid})
}

// keyOf takes a key apart again.
func keyOf(process event.Process, pid uint32) taskKey {
	number, start, _ := strings.Cut(string(process), "@")
	n, _ := strconv.ParseUint(number, 10, 32)
	at, _ := strconv.ParseUint(start, 10, 64)
	return taskKey{Tgid: uint32(n), Start: at, Pid: pid}
}

// alive tells whether a process is still there, and its first thread has not ended.
func alive(key taskKey) bool { return procfs.Alive(int(key.Pid), int64(key.Start)) }

// matches tells whether a program's name, of which the kernel keeps 15 bytes, is one of
// those that globs mean.
func matches(patterns []string, name string) bool {
	for _, pattern := range patterns {
		if !strings.ContainsAny(pattern, `*?[\`) {
			pattern = pattern[:min(len(pattern), 15)]
		}
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return false
}
