package builds

import (
	"path"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// places are where the file is that a process runs by a name: what it runs, unless that is an interpreter; the path as
// the process sees it; and if the process is gone, as the node's first process does.
func places(pid int, name string) (all []string) {
	if runs, err := procfs.Executable(pid); err == nil && path.Base(runs) == path.Base(name) {
		all = append(all, path.Join(path.Dir(procfs.Root(pid)), "exe"))
	}
	for _, of := range []int{pid, 1} {
		if at, err := securejoin.SecureJoin(procfs.Root(of), name); err == nil {
			all = append(all, at)
		}
	}
	return all
}
