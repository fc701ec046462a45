package agents

import (
	"path"
	"strings"

	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// matches compares a process's name with globs, cut to 15 bytes as the kernel's names are.
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

// Program returns the kernel's name of a program; may be empty.
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
