package gather

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/procfs"
)

func loadBalancing(context.Context) (lb fact.LB, err error) {
	if lb.Socket, err = socketPrograms(); err != nil {
		return lb, err
	}
	if lb.Device, err = devicePrograms(); err != nil {
		return lb, err
	}
	if len(lb.Socket)+len(lb.Device) > 0 {
		err = count(&lb)
	}
	return lb, err
}

func socketPrograms() (found []fact.Attached, err error) {
	path := procfs.Cgroup()
	if path == "" {
		return nil, nil // programs need cgroup v2
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the cgroup of doctor: %w", err)
	}
	defer dir.Close()
	const effective = 1 // BPF_F_QUERY_EFFECTIVE
	for _, at := range []ebpf.AttachType{ebpf.AttachCGroupInet4Connect, ebpf.AttachCGroupInet6Connect} {
		result, err := link.QueryPrograms(link.QueryOptions{Target: int(dir.Fd()), Attach: at, QueryFlags: effective})
		if errors.Is(err, ebpf.ErrNotSupported) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list the BPF programs of the cgroup: %w", err)
		}
		for _, p := range result.Programs {
			name, err := programName(p.ID)
			if err != nil {
				return nil, err
			}
			if fact.Matches([]string{"cil_sock4_conn*", "cil_sock6_conn*", "sock4_connect", "sock6_connect"}, name) {
				found = append(found, fact.Attached{Program: name, To: "cgroup " + fact.Clean(path)})
			}
		}
	}
	return found, nil
}

func devicePrograms() (found []fact.Attached, err error) {
	links, err := interfaces()
	if err != nil {
		return nil, fmt.Errorf("cannot list the interfaces: %w", err)
	}
	for _, l := range links {
		names, err := programsOn(l)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if fact.Matches([]string{"cil_from_netdev*", "cil_xdp_entry*", "from-netdev*", "bpf_netdev*"}, name) {
				found = append(found, fact.Attached{Program: fact.Clean(name), To: "interface " + fact.Clean(l.Attrs().Name)})
			}
		}
	}
	return found, nil
}

func programsOn(l netlink.Link) (names []string, err error) {
	result, err := link.QueryPrograms(link.QueryOptions{Target: l.Attrs().Index, Attach: ebpf.AttachTCXIngress})
	switch {
	case err == nil:
		for _, p := range result.Programs {
			name, err := programName(p.ID)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("cannot list the BPF programs of %s: %w", l.Attrs().Name, err)
	} // no tcx
	filters, err := netlink.FilterList(l, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		filters = nil // no filters
	}
	for _, f := range filters {
		if b, ok := f.(*netlink.BpfFilter); ok {
			names = append(names, b.Name)
		}
	}
	if xdp := l.Attrs().Xdp; xdp != nil && xdp.Attached {
		name, err := programName(ebpf.ProgramID(xdp.ProgId))
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

func programName(id ebpf.ProgramID) (string, error) {
	p, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil // it is gone
	}
	if err != nil {
		return "", fmt.Errorf("cannot read a BPF program: %w", err)
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return "", fmt.Errorf("cannot read a BPF program: %w", err)
	}
	return info.Name, nil
}

const (
	maxServices = 4096 // examined entries
	// struct lb4_service and lb6_service (Cilium, bpf/lib/common.h): 12 bytes, flags at byte 8; 1<<1 is a node port.
	serviceSize, serviceFlags, nodePortFlag = 12, 8, 1 << 1
)

func count(lb *fact.LB) error {
	for id := ebpf.MapID(0); ; {
		var err error
		if id, err = ebpf.MapGetNextID(id); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return fmt.Errorf("cannot list the BPF maps: %w", err)
		}
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			continue // it is gone
		}
		countIn(lb, m)
		_ = m.Close()
	}
}

func countIn(lb *fact.LB, m *ebpf.Map) {
	info, err := m.Info()
	if err != nil || !fact.Matches([]string{"cilium_lb4_serv*", "cilium_lb6_serv*"}, info.Name) {
		return
	}
	var key, value []byte
	n := 0
	for entries := m.Iterate(); n < maxServices && entries.Next(&key, &value); n++ {
		if len(value) == serviceSize && value[serviceFlags]&nodePortFlag != 0 {
			lb.NodePorts++
		}
	}
	lb.Services += n
	if name := "map " + fact.Clean(info.Name); n > 0 && !slices.Contains(lb.Maps, name) {
		lb.Maps = append(lb.Maps, name)
	}
}
