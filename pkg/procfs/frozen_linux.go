package procfs

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// freezers are the files that report a freeze, and that end it.
var freezers = map[string]struct{ tells, thaws string }{
	"cgroup2": {"cgroup.freeze", "cgroup.freeze"},
	"cgroup":  {"freezer.self_freezing", "freezer.state"},
}

// FrozenBy returns the file that freezes a process's cgroup or a parent: cgroup.freeze (version 2) or freezer.state
// (version 1). It is empty if none does, or the cgroup is invisible.
func FrozenBy(pid int) string {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return ""
	}
	self, err := procfs.Self()
	if err != nil {
		return ""
	}
	groups, err1 := p.Cgroups()
	mounts, err2 := self.MountInfo()
	if err1 != nil || err2 != nil {
		return ""
	}
	for _, m := range mounts {
		file, is := freezers[m.FSType]
		i := slices.IndexFunc(groups, func(g procfs.Cgroup) bool {
			_, mounted := m.SuperOptions["freezer"]
			return m.FSType == "cgroup2" && g.HierarchyID == 0 || mounted && slices.Contains(g.Controllers, "freezer")
		})
		if !is || i < 0 {
			continue
		}
		below, err := filepath.Rel(m.Root, groups[i].Path)
		if err != nil || strings.HasPrefix(below, "..") {
			continue
		}
		for dir := filepath.Join(m.MountPoint, below); ; dir = filepath.Dir(dir) {
			if set, err := os.ReadFile(filepath.Join(dir, file.tells)); err == nil && strings.TrimSpace(string(set)) == "1" {
				return filepath.Join(dir, file.thaws)
			}
			if dir == filepath.Clean(m.MountPoint) {
				break
			}
		}
	}
	return ""
}

// TracerOf returns the PID of a process's tracer; 0 if there is none, or it is invisible.
func TracerOf(pid int) int {
	status, err := os.ReadFile(path(pid, "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if number, is := strings.CutPrefix(line, "TracerPid:"); is {
			tracer, _ := strconv.Atoi(strings.TrimSpace(number))
			return tracer
		}
	}
	return 0
}
