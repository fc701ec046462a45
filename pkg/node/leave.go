package node

import (
	"os"
	"path/filepath"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// leaveNode removes empty directories that kubelet made for hostPath mounts (DirectoryOrCreate), through process 1's
// root: a mount point cannot be removed from inside.
func leaveNode(dirs ...string) {
	own, err1 := procfs.OwnNamespace("mnt")
	first, err2 := procfs.Namespace(1, "mnt")
	if err1 != nil || err2 != nil || own == first {
		return
	}
	for _, dir := range dirs {
		here, err1 := os.Stat(dir)
		onNode := filepath.Join(procfs.Root(1), dir)
		there, err2 := os.Lstat(onNode)
		if err1 == nil && err2 == nil && os.SameFile(here, there) {
			_ = os.Remove(onNode) // fails if it has files
		}
	}
}
