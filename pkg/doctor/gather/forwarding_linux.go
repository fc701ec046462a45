package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

const (
	sysctls = "/proc/sys/net/"
	// switchesMax bounds the interfaces whose switch is read.
	switchesMax = 4096
)

func forwarding(context.Context) (f fact.Forwarding, err error) {
	on, err := number(sysctls + "ipv4/ip_forward")
	if err != nil {
		return f, fmt.Errorf("cannot read the sysctls of forwarding: %w", err)
	}
	f.Switches = map[string]bool{"ipv4/ip_forward": on != 0}
	if on, err := number(sysctls + "ipv6/conf/all/forwarding"); err == nil {
		f.Switches["ipv6/conf/all/forwarding"] = on != 0
	}
	if f.Switches["ipv4/ip_forward"] { // else the others follow from it
		f.Default = ofDefaultRoutes()
		files, _ := filepath.Glob(sysctls + "ipv4/conf/*/forwarding")
		for _, file := range files[:min(len(files), switchesMax)] {
			name := filepath.Base(filepath.Dir(file))
			if on, err := number(file); err == nil && name != "all" && name != "default" {
				f.Switches[strings.TrimPrefix(file, sysctls)] = on != 0
			}
		}
	}
	f.Unbridged = map[string]string{}
	for _, family := range []string{"ip", "ip6"} {
		name := "bridge-nf-call-" + family + "tables"
		switch on, err := number(sysctls + "bridge/" + name); {
		case errors.Is(err, fs.ErrNotExist):
			f.Unbridged[family] = "the module br_netfilter is not loaded"
		case err == nil && on == 0:
			f.Unbridged[family] = "net.bridge." + name + " is 0"
		}
	}
	f.Tables, err = tables()
	return f, err
}

func ofDefaultRoutes() (names []string) {
	routes, _ := netlink.RouteList(nil, unix.AF_INET)
	for _, r := range routes {
		if p, ok := prefixOf(r.Dst); ok && p.Bits() > 0 {
			continue
		}
		indexes := []int{r.LinkIndex}
		for _, hop := range r.MultiPath {
			indexes = append(indexes, hop.LinkIndex)
		}
		for _, index := range indexes {
			if l, err := netlink.LinkByIndex(index); err == nil {
				names = append(names, fact.Clean(l.Attrs().Name))
			}
		}
	}
	return names
}

// tables are the node's; only its own network namespace may set their limits.
func tables() (all []fact.Table, err error) {
	for _, t := range []struct {
		name, option, used string
		read               func(file string) (int, error)
	}{
		{"connection tracking", "netfilter/nf_conntrack_max", sysctls + "netfilter/nf_conntrack_count", number},
		{"neighbors (IPv4)", "ipv4/neigh/default/gc_thresh3", "/proc/net/stat/arp_cache", neighborEntries},
		{"neighbors (IPv6)", "ipv6/neigh/default/gc_thresh3", "/proc/net/stat/ndisc_cache", neighborEntries},
	} {
		table := fact.Table{Name: t.name, Option: "net." + strings.ReplaceAll(t.option, "/", ".")}
		table.Limit, err = number(sysctls + t.option)
		if err == nil {
			table.Used, err = t.read(t.used)
		}
		switch {
		case err == nil:
			all = append(all, table)
		case !errors.Is(err, fs.ErrNotExist): // the module is not loaded
			return all, err
		}
	}
	return all, nil
}

func number(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// neighborEntries reads the first column, equal in each CPU's line.
func neighborEntries(file string) (int, error) {
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
