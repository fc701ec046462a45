package node

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/peer"
	"github.com/cniscope/cniscope/pkg/procfs"
	"github.com/cniscope/cniscope/pkg/text"
)

// nriPlugins lists processes at NRI's socket, whose path the runtime's ends have.
func nriPlugins(socket string) (found []event.Actor) {
	ends, err := peer.Streams()
	table, errTable := os.ReadFile("/proc/self/net/unix")
	pids, errPIDs := procfs.All()
	if err != nil || errTable != nil || errPIDs != nil {
		return nil
	}
	theirs := map[uint64]bool{}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) == 8 && filepath.Base(f[7]) == filepath.Base(socket) {
			inode, _ := strconv.ParseUint(f[6], 10, 64)
			theirs[ends[inode].Inode] = true
		}
	}
	delete(theirs, 0)
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		_ = procfs.Descriptors(pid, func(_ int, target string) bool {
			if !theirs[procfs.SocketIn(target)] {
				return true
			}
			if s, err := procfs.StatOf(pid); err == nil {
				found = append(found, event.Actor{PID: uint32(pid), Name: text.Clean(s.Name, text.Bound)})
			}
			return false
		})
	}
	return found
}
