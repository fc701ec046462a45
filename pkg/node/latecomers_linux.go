package node

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cniscope/cniscope/pkg/firstconn"
	"github.com/cniscope/cniscope/pkg/procfs"
)

// shortestID is the length of short sandbox IDs. A shorter one may be part of any cgroup name.
const shortestID = 12

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
		if !strings.Contains(procfs.Groups(pid), sandbox) {
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

// countsMax bounds the bytes of a table: netstat has 4 KB, 1024 neighbors (gc_thresh3) 80 KB.
const countsMax = 128 << 10

func countsOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	all, _ := io.ReadAll(io.LimitReader(f, countsMax)) // a part is enough
	return string(all)
}
