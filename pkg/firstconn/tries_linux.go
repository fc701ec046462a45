package firstconn

import (
	"strconv"

	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// Tries reads the counters of namespaces by their inodes.
func Tries(r *procfs.Residents, namespaces []event.Namespace) map[event.Namespace]*event.Tries {
	found, missing := map[event.Namespace]*event.Tries{}, map[uint32]event.Namespace{}
	for _, in := range namespaces {
		if inode, err := strconv.ParseUint(in.Label, 10, 32); err == nil {
			missing[uint32(inode)] = in
		}
	}
	for pid, inode := range procfs.Inside(r, missing) {
		snmp, netstat, arp := procfs.Net(pid, "snmp"), "", ""
		if used(snmp) {
			netstat, arp = procfs.Net(pid, "netstat"), procfs.Net(pid, "arp")
		}
		if now, err := procfs.Namespace(pid, "net"); snmp == "" || err != nil || now != inode {
			continue // it left, or another process has its number
		}
		found[missing[inode]] = Parse(snmp, netstat, arp)
		delete(missing, inode)
	}
	return found
}
