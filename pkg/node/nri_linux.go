package node

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// nriPlugins lists other processes at NRI's socket, and searches only after a change.
type nriPlugins struct {
	base  string
	ends  []uint64
	found []event.Actor
	pids  func() ([]int, error)
}

func newNRIPlugins(socket string) *nriPlugins {
	return &nriPlugins{base: filepath.Base(socket), pids: procfs.All}
}

func (n *nriPlugins) list() []event.Actor {
	ends, err := peer.AtSocket(n.base)
	if err != nil {
		return nil
	}
	if slices.Sort(ends); slices.Equal(ends, n.ends) {
		return n.found
	}
	n.ends, n.found = ends, nil
	theirs := map[uint64]bool{}
	for _, end := range ends {
		theirs[end] = true
	}
	holds(os.Getpid(), theirs)
	if len(theirs) == 0 {
		return nil
	}
	pids, _ := n.pids()
	for _, pid := range pids {
		if !holds(pid, theirs) {
			continue
		}
		if s, err := procfs.StatOf(pid); err == nil {
			n.found = append(n.found, event.Actor{PID: uint32(pid), Name: text.Clean(s.Name, text.Bound)})
		}
		if len(theirs) == 0 {
			break
		}
	}
	return n.found
}

// holds also deletes the sockets that the process has.
func holds(pid int, sockets map[uint64]bool) (is bool) {
	_ = procfs.Descriptors(pid, func(_ int, target string) bool {
		if inode := procfs.SocketIn(target); sockets[inode] {
			delete(sockets, inode)
			is = true
		}
		return len(sockets) > 0
	})
	return is
}
