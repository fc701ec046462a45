package firstconn

import (
	"slices"
	"strconv"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Tries reads the counters of namespaces by their inodes.
func Tries(namespaces []event.Namespace) map[event.Namespace]*event.Tries {
	found, missing := map[event.Namespace]*event.Tries{}, map[string]event.Namespace{}
	for _, in := range namespaces {
		missing[in.Label] = in
	}
	pids, _ := procfs.All()
	for _, pid := range slices.Backward(pids) {
		inode := inodeOf(pid)
		in, is := missing[inode]
		if !is || inode == "" {
			continue
		}
		snmp, netstat, arp := procfs.Net(pid, "snmp"), procfs.Net(pid, "netstat"), procfs.Net(pid, "arp")
		if snmp == "" || inodeOf(pid) != inode { // it left, or another process has its number
			continue
		}
		found[in] = Parse(snmp, netstat, arp)
		if delete(missing, inode); len(missing) == 0 {
			break
		}
	}
	return found
}

func inodeOf(pid int) string {
	inode, err := procfs.Namespace(pid, "net")
	if err != nil {
		return ""
	}
	return strconv.FormatUint(uint64(inode), 10)
}
