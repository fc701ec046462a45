package procfs

import (
	"iter"
	"slices"
	"sync"
)

// Residents are processes by the inode of their network namespace.
type Residents struct {
	mu   sync.Mutex
	pids map[uint32]int
}

const residentsMax = 4096

// Note spares Inside a search.
func (r *Residents) Note(pid int) {
	if inode, err := Namespace(pid, "net"); err == nil {
		r.note(inode, pid)
	}
}

func (r *Residents) note(inode uint32, pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pids == nil || len(r.pids) >= residentsMax {
		r.pids = map[uint32]int{}
	}
	r.pids[inode] = pid
}

func (r *Residents) noted(inode uint32) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pids[inode]
}

// Inside searches until wanted is empty.
func Inside[V any](r *Residents, wanted map[uint32]V) iter.Seq2[int, uint32] {
	return func(yield func(int, uint32) bool) {
		try := func(pid int) bool {
			inode, err := Namespace(pid, "net")
			if _, is := wanted[inode]; err != nil || !is {
				return true
			}
			r.note(inode, pid)
			return yield(pid, inode)
		}
		for inode := range wanted {
			if pid := r.noted(inode); pid != 0 && !try(pid) {
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
