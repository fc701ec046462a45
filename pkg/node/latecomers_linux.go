package node

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cniscope/cniscope/pkg/firstconn"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// shortestID is how long a sandbox's id is at least that is looked for in the names of cgroups: as long as the short
// ids that people type. A shorter one could be part of any name.
const shortestID = 12

// triesOf reads what the kernel counted in the network namespace of a sandbox; firstconn.Unknown where it cannot be found.
func triesOf(sandbox string) firstconn.Tries {
	unknown := firstconn.Unknown()
	if len(sandbox) < shortestID {
		return unknown
	}
	own, err := procfs.OwnNamespace("net")
	if err != nil {
		return unknown
	}
	pids, err := procfs.All()
	if err != nil {
		return unknown
	}
	for _, pid := range pids {
		if !strings.Contains(procfs.CgroupOf(pid), sandbox) {
			continue
		}
		if ns, err := procfs.Namespace(pid, "net"); err != nil || ns == own {
			continue
		}
		read := func(name string) string { return countsOf(fmt.Sprintf("/proc/%d/net/%s", pid, name)) }
		if snmp := read("snmp"); snmp != "" {
			return firstconn.Parse(snmp, read("netstat"), read("arp"))
		}
	}
	return unknown
}

// countsMax is how much of a table is read: netstat has some 4 KB, a table of 1024 neighbours (gc_thresh3) 80 KB.
const countsMax = 128 << 10

func countsOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	all, _ := io.ReadAll(io.LimitReader(f, countsMax)) // what was read says what it says
	return string(all)
}
