package procfs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

type group struct {
	mount, dir string
	unified    bool
	outside    bool
}

func groupsOf(pid int, controller string) (all []group) {
	self, err := procfs.Self()
	if err != nil {
		return nil
	}
	p := self
	if pid != 0 {
		if p, err = procfs.NewProc(pid); err != nil {
			return nil
		}
	}
	groups, err1 := p.Cgroups()
	mounts, err2 := self.MountInfo()
	if err1 != nil || err2 != nil {
		return nil
	}
	for _, m := range mounts {
		unified := m.FSType == "cgroup2"
		_, controls := m.SuperOptions[controller]
		i := slices.IndexFunc(groups, func(g procfs.Cgroup) bool {
			return unified && g.HierarchyID == 0 || controls && slices.Contains(g.Controllers, controller)
		})
		if i < 0 || !unified && m.FSType != "cgroup" {
			continue
		}
		below, err := filepath.Rel(m.Root, groups[i].Path)
		outside := err != nil || strings.HasPrefix(below, "..")
		if outside {
			below = "."
		}
		all = append(all, group{m.MountPoint, filepath.Join(m.MountPoint, below), unified, outside})
	}
	return all
}

// Cgroup returns our directory in the unified hierarchy; if only another part is mounted, its top; or empty.
func Cgroup() string { return CgroupOf(0) }

// CgroupOf is Cgroup for a process.
func CgroupOf(pid int) string {
	for _, g := range groupsOf(pid, "") {
		if info, err := os.Stat(g.dir); g.unified && err == nil && info.IsDir() {
			return g.dir
		}
	}
	return ""
}

// FrozenBy returns the file that freezes a process: cgroup.freeze (version 2), freezer.state (version 1), or "".
func FrozenBy(pid int) string {
	for _, g := range groupsOf(pid, "freezer") {
		state, thaws := "freezer.self_freezing", "freezer.state"
		if g.unified {
			state, thaws = "cgroup.freeze", "cgroup.freeze"
		}
		for dir := g.dir; !g.outside; dir = filepath.Dir(dir) {
			if set, err := os.ReadFile(filepath.Join(dir, state)); err == nil && strings.TrimSpace(string(set)) == "1" {
				return filepath.Join(dir, thaws)
			}
			if dir == filepath.Clean(g.mount) {
				break
			}
		}
	}
	return ""
}

// MemoryGroup is the cgroup that limits a process's memory.
type MemoryGroup struct{ file string }

// MemoryGroupOf returns a process's memory cgroup; the zero value counts nothing.
func MemoryGroupOf(pid int) MemoryGroup {
	for _, g := range groupsOf(pid, "memory") {
		file := filepath.Join(g.dir, "memory.oom_control")
		if g.unified {
			file = filepath.Join(g.dir, "memory.events")
		}
		if _, err := os.Stat(file); err == nil && !g.outside {
			return MemoryGroup{file}
		}
	}
	return MemoryGroup{}
}

// Killed counts OOM kills in and below the cgroup.
func (g MemoryGroup) Killed() uint64 {
	if g.file == "" {
		return 0
	}
	return field(g.file, "oom_kill ")
}

var anyID = regexp.MustCompile(`[0-9a-f]{64}`)

// Containers returns a process of each container, by the ids in the names of cgroups. Zombies do not count: a runtime
// that does not reap leaves them.
func Containers() (map[string]int, error) {
	pids, err := All()
	if err != nil {
		return nil, fmt.Errorf("listing the processes: %w", err)
	}
	found := map[string]int{}
	for _, pid := range pids {
		if ids := anyID.FindAllString(Groups(pid), -1); len(ids) > 0 && !Ended(pid) {
			for _, id := range ids {
				found[id] = pid
			}
		}
	}
	return found, nil
}
