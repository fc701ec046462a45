package node

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/nri"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// nriPlugins lists other processes at NRI's socket, and those that the runtime started. It searches after a
// change.
type nriPlugins struct {
	base string
	pids func() ([]int, error)

	mu      sync.Mutex
	runtime int
	ends    []uint64
	found   []nri.Other
}

func newNRIPlugins(socket string) *nriPlugins {
	return &nriPlugins{base: filepath.Base(socket), pids: procfs.All, runtime: -1}
}

func (n *nriPlugins) list(runtime int) (living []nri.Other) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ends, err := peer.AtSocket(n.base)
	if err != nil {
		return nil
	}
	if slices.Sort(ends); runtime != n.runtime || !slices.Equal(ends, n.ends) {
		n.runtime, n.ends = runtime, ends
		n.search()
	}
	for _, o := range n.found {
		if procfs.Alive(int(o.PID), o.Start) {
			o.Wrote = procfs.Writes(int(o.PID))
			living = append(living, o)
		}
	}
	return living
}

func (n *nriPlugins) search() {
	n.found = nil
	pids, _ := n.pids()
	memory := procfs.NewMemory()
	for _, pid := range pids {
		s, err := procfs.StatOf(pid)
		if err != nil || pid == os.Getpid() {
			continue
		}
		name := ""
		if s.Parent == n.runtime {
			env, _ := memory.Environment(pid)
			for _, v := range env {
				if after, is := strings.CutPrefix(v, "NRI_PLUGIN_NAME="); is {
					name = after
				}
			}
		}
		_ = procfs.Descriptors(pid, func(fd int, target string) bool {
			inode := procfs.SocketIn(target)
			if !slices.Contains(n.ends, inode) && (name == "" || fd != 3 || inode == 0) {
				return true
			}
			n.found = append(n.found, nri.Other{
				Actor: event.Actor{PID: uint32(pid), Name: text.Clean(cmp.Or(name, s.Name), text.Bound)}, Start: s.Start,
			})
			return false
		})
	}
}
