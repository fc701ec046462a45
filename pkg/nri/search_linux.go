package nri

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// Search finds other plugins after a change: processes at the runtime's NRI socket, and those that it started.
type Search struct {
	base string
	pids func() ([]int, error)

	mu      sync.Mutex
	runtime int
	ends    map[uint64]uint64
	found   []Other
}

// NewSearch takes the socket's path, which may be another in the runtime's mounts.
func NewSearch(socket string) *Search {
	return &Search{base: filepath.Base(socket), pids: procfs.All, runtime: -1}
}

// List returns the living ones.
func (n *Search) List(runtime int) (living []Other) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ends, err := peer.AtSocket(n.base)
	if err != nil {
		return nil
	}
	if runtime != n.runtime || !maps.Equal(ends, n.ends) {
		n.runtime, n.ends = runtime, ends
		n.search()
	}
	for _, o := range n.found {
		if procfs.Alive(int(o.PID), o.Start) {
			o.Read, o.Wrote = procfs.Calls(int(o.PID))
			living = append(living, o)
		}
	}
	return living
}

func (n *Search) search() {
	n.found = nil
	var plugins []uint64 // at a socket of the runtime: a tenant's can have its name
	_ = procfs.Descriptors(n.runtime, func(_ int, target string) bool {
		if end := n.ends[procfs.SocketIn(target)]; end != 0 {
			plugins = append(plugins, end)
		}
		return true
	})
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
		_ = procfs.Descriptors(pid, func(_ int, target string) bool {
			inode := procfs.SocketIn(target)
			if !slices.Contains(plugins, inode) && (name == "" || inode == 0) {
				return true
			}
			n.found = append(n.found, Other{
				Actor: event.Actor{PID: uint32(pid), Name: text.Clean(cmp.Or(name, s.Name), text.Bound)}, Start: s.Start,
			})
			return false
		})
	}
}
