package main

import (
	"os"
	"path/filepath"

	"github.com/cniscope/cniscope/pkg/procfs"
)

// leaveNode removes folders of the node that a pod has mounts of, if nothing is in them: kubelet
// makes them for the pod (hostPath, DirectoryOrCreate), and nobody takes them away. A mount cannot
// remove what it shows, so they are reached by the root of the node's first process, and only if
// that is the very folder. A cniscope that is no container leaves them to who installed it.
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
			_ = os.Remove(onNode) // another's files keep it
		}
	}
}
