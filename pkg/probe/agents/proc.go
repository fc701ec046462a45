package agents

import (
	"path"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/probe/kernel"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// state samples what an agent does.
func (k *agent) state() *event.Agent {
	s := &event.Agent{Process: kernel.ProcessOf(k.key), PID: k.key.Pid, Name: k.name}
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
	return kernel.ProcessOf(kernel.Key{Tgid: pid, Start: uint64(s.Start), Pid: pid})
}

// Alive reports whether a process is still there, and its first thread has not ended.
func Alive(key kernel.Key) bool { return procfs.Alive(int(key.Pid), int64(key.Start)) }

// matches reports whether a program's name, of which the kernel keeps 15 bytes, is one of
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

// Program is what the kernel calls the program of a process; empty if that is gone.
func Program(pid uint32) string {
	s, err := procfs.StatOf(int(pid))
	if err != nil {
		return ""
	}
	return text.Clean(s.Name, 16)
}
