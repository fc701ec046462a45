package agents

import (
	"path"
	"strings"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

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

func (a *Agents) knows(pid uint32) bool {
	for _, known := range a.known {
		if known.key.Pid == pid {
			return true
		}
	}
	return false
}
