package nri

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// Search finds plugins after a change: processes at the runtime's NRI socket, and those that it started.
type Search struct {
	base string
	pids func() ([]int, error)
	max  time.Duration

	runtime int
	resumes time.Time         // after a failure
	pause   time.Duration     // grows with failures
	at      map[uint64]uint64 // connections at the socket's path
	clients map[uint64]bool   // of the runtime's sockets: a tenant's can have its name
	found   []Other
}

// NewSearch takes the socket's path, which runtimes may mount elsewhere.
func NewSearch(socket string) *Search {
	return &Search{base: filepath.Base(socket), pids: procfs.All, max: 2 * time.Second, runtime: -1}
}

// List returns living ones. Calls must not overlap.
func (n *Search) List(runtime int) (living []Other, ok bool) {
	ends, at, unread, err := peer.Connected(n.base)
	if err != nil {
		return nil, false
	}
	if runtime != n.runtime || !maps.Equal(at, n.at) {
		if time.Now().Before(n.resumes) {
			return nil, false
		}
		clients, others := map[uint64]bool{}, map[uint64]bool{}
		if procfs.Descriptors(runtime, func(_ int, target string) bool {
			inode := procfs.SocketIn(target)
			clients[at[inode]], others[ends[inode]] = true, true
			return true
		}) != nil {
			return nil, false
		}
		delete(clients, 0)
		delete(others, 0)
		again := runtime != n.runtime || !maps.Equal(clients, n.clients)
		if n.runtime, n.at, n.clients = runtime, at, clients; again && !n.search(others) {
			n.pause = min(max(n.max, 2*n.pause), pauseMost*n.max)
			n.runtime, n.resumes = -1, time.Now().Add(n.pause)
			return nil, false
		}
		n.pause = 0
	}
	for _, o := range n.found {
		if ends[o.socket] != 0 && procfs.Alive(int(o.PID), o.Start) {
			o.Read, o.Wrote = procfs.Calls(int(o.PID))
			o.Unread = unread[o.socket]
			living = append(living, o)
		}
	}
	return living, true
}

const (
	descriptorsMax   = 1 << 12 // of a process: pods may have millions
	descriptorsFirst = 64
	pauseMost        = 15 // of max
)

func (n *Search) search(others map[uint64]bool) bool {
	n.found = nil
	began := time.Now()
	pids, _ := n.pids()
	memory, left, held := procfs.NewMemory(), maps.Clone(n.clients), map[uint64]bool{}
	for _, most := range [...]int{descriptorsFirst, descriptorsMax} {
		for _, pid := range pids {
			if time.Since(began) > n.max {
				return false
			}
			if s, err := procfs.StatOf(pid); err == nil {
				n.examine(pid, &s, most, memory, &sought{left, others, held})
			}
		}
		maps.DeleteFunc(left, func(inode uint64, _ bool) bool { return held[inode] })
		if others = nil; len(left) == 0 {
			break
		}
	}
	return true
}

// sought are ends of the runtime's connections; held those of examined processes.
type sought struct{ left, others, held map[uint64]bool }

func (n *Search) examine(pid int, s *procfs.Stat, most int, memory *procfs.Memory, ends *sought) {
	name := ""
	if s.Parent == n.runtime && ends.others != nil {
		env, _ := memory.Environment(pid)
		for _, v := range env {
			if after, is := strings.CutPrefix(v, "NRI_PLUGIN_NAME="); is {
				name = after
			}
		}
	}
	ours := pid == os.Getpid()
	_ = procfs.Descriptors(pid, func(_ int, target string) bool {
		most--
		inode := procfs.SocketIn(target)
		switch {
		case !ends.left[inode] && (name == "" || !ends.others[inode]):
		case ours:
			ends.held[inode] = true
		default:
			ends.held[inode] = true
			if slices.ContainsFunc(n.found, func(o Other) bool { return o.PID == uint32(pid) }) {
				break
			}
			n.found = append(n.found, Other{
				Actor: event.Actor{PID: uint32(pid), Name: text.Clean(cmp.Or(name, s.Name), text.Bound)}, Start: s.Start,
				socket: inode,
			})
		}
		return most > 0 || ours
	})
}
