package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// forwarding omits what this kernel lacks.
func forwarding(context.Context) (f fact.Forwarding, err error) {
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil {
		return f, fmt.Errorf("whether the node forwards: %w", err)
	}
	f.Switches = map[string]bool{"ipv4/ip_forward": strings.TrimSpace(string(text)) != "0"}
	connections := fact.Table{Name: "connection tracking", Option: "net.netfilter.nf_conntrack_max"}
	connections.Used, err = number("/proc/sys/net/netfilter/nf_conntrack_count")
	if err == nil {
		connections.Limit, err = number("/proc/sys/net/netfilter/nf_conntrack_max")
	}
	switch {
	case err == nil:
		f.Tables = append(f.Tables, connections)
	case !errors.Is(err, fs.ErrNotExist): // the module is not loaded
		return f, err
	}
	// Both are the node's; only its own network namespace may set the limit.
	neighbours := fact.Table{Name: "neighbors (IPv4)", Option: "net.ipv4.neigh.default.gc_thresh3"}
	if neighbours.Limit, err = number("/proc/sys/net/ipv4/neigh/default/gc_thresh3"); err == nil {
		neighbours.Used, err = neighbourEntries("/proc/net/stat/arp_cache")
	}
	if err == nil {
		f.Tables = append(f.Tables, neighbours)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return f, nil
}

func number(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// neighbourEntries reads the first column, which is the same in each CPU's line (net/core/neighbour.c).
func neighbourEntries(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) < 2 || len(strings.Fields(lines[1])) == 0 {
		return 0, fmt.Errorf("%s has no entries", file)
	}
	n, err := strconv.ParseUint(strings.Fields(lines[1])[0], 16, 31)
	return int(n), err
}
