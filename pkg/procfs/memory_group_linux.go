package procfs

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// MemoryGroup is the cgroup that limits a process's memory.
type MemoryGroup struct{ file string }

// MemoryGroupOf returns a process's memory cgroup; the zero value counts nothing.
func MemoryGroupOf(pid int) (g MemoryGroup) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return g
	}
	self, err := procfs.Self()
	if err != nil {
		return g
	}
	groups, err1 := p.Cgroups()
	mounts, err2 := self.MountInfo()
	if err1 != nil || err2 != nil {
		return g
	}
	for _, m := range mounts {
		file, is := "memory.events", m.FSType == "cgroup2"
		if _, v1 := m.SuperOptions["memory"]; m.FSType == "cgroup" && v1 {
			file, is = "memory.oom_control", true
		}
		i := slices.IndexFunc(groups, func(c procfs.Cgroup) bool {
			return m.FSType == "cgroup2" && c.HierarchyID == 0 || m.FSType == "cgroup" && slices.Contains(c.Controllers, "memory")
		})
		if !is || i < 0 {
			continue
		}
		below, err := filepath.Rel(m.Root, groups[i].Path)
		if err != nil || strings.HasPrefix(below, "..") {
			continue
		}
		file = filepath.Join(m.MountPoint, below, file)
		if _, err := os.Stat(file); err == nil {
			return MemoryGroup{file}
		}
	}
	return g
}

// Killed counts OOM kills in the cgroup and below; 0 if unknown.
func (g MemoryGroup) Killed() (n uint64) {
	if g.file == "" {
		return 0
	}
	data, err := os.ReadFile(g.file)
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if count, is := strings.CutPrefix(lines.Text(), "oom_kill "); is {
			n, _ = strconv.ParseUint(count, 10, 64)
		}
	}
	return n
}
