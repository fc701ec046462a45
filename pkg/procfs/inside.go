package procfs

import (
	"iter"
	"slices"
	"sync"
)

// by the inode of the network namespace
var insides struct {
	sync.Mutex
	pids map[uint32]int
}

const insidesMax = 4096

// Note spares Inside a search.
func Note(pid int) {
	if inode, err := Namespace(pid, "net"); err == nil {
		note(inode, pid)
	}
}

func note(inode uint32, pid int) {
	insides.Lock()
	defer insides.Unlock()
	if insides.pids == nil || len(insides.pids) >= insidesMax {
		insides.pids = map[uint32]int{}
	}
	insides.pids[inode] = pid
}

func noted(inode uint32) int {
	insides.Lock()
	defer insides.Unlock()
	return insides.pids[inode]
}

// Inside yields processes in wanted network namespaces, until the caller deleted all wanted.
func Inside[V any](wanted map[uint32]V) iter.Seq2[int, uint32] {
	return func(yield func(int, uint32) bool) {
		try := func(pid int) bool {
			inode, err := Namespace(pid, "net")
			if _, is := wanted[inode]; err != nil || !is {
				return true
			}
			note(inode, pid)
			return yield(pid, inode)
		}
		for inode := range wanted {
			if pid := noted(inode); pid != 0 && !try(pid) {
				return
			}
		}
		if len(wanted) == 0 {
			return
		}
		pids, _ := All()
		for _, pid := range slices.Backward(pids) {
			if len(wanted) == 0 || !try(pid) {
				return
			}
		}
	}
}
