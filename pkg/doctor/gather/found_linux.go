package gather

import (
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/leak"
)

const portsMax = 4

func attached(sees view, found *event.Found) error {
	links, err := interfaces()
	if err != nil {
		return fmt.Errorf("cannot list the interfaces: %w", err)
	}
	byIndex := map[int]netlink.Link{}
	var it netlink.Link
	for _, l := range links {
		byIndex[l.Attrs().Index] = l
		if l.Attrs().Name == found.Name {
			it = l
		}
	}
	if found.Absent = it == nil; found.Absent {
		return nil
	}
	found.Type = it.Type()
	addresses, err := netlink.AddrList(it, netlink.FAMILY_ALL)
	if err != nil {
		return fmt.Errorf("cannot list its addresses: %w", err)
	}
	for _, a := range addresses {
		if p, ok := prefixOf(a.IPNet); ok && !p.Addr().IsLinkLocalUnicast() && len(found.Addresses) < addressesMax {
			found.Addresses = append(found.Addresses, p.String())
		}
	}
	if m := byIndex[it.Attrs().MasterIndex]; m != nil {
		found.Master, found.MasterType = fact.Clean(m.Attrs().Name), m.Type()
	}
	var of map[string]event.Pod
	for _, l := range links {
		if l.Attrs().MasterIndex != it.Attrs().Index {
			continue
		}
		if of == nil {
			if of, err = podsOfLinks(sees); err != nil {
				return err
			}
		}
		name := l.Attrs().Name
		found.Ports++
		switch pod, is := of[name]; {
		case is:
			if found.OfPods++; len(found.Pods) < portsMax {
				found.Pods = append(found.Pods, pod)
			}
		case len(found.Others) < portsMax:
			found.Others = append(found.Others, fact.Clean(name))
		}
	}
	return nil
}

func podsOfLinks(sees view) (map[string]event.Pod, error) {
	var l leak.Look
	files, err := resultFiles(sees, &l)
	if err != nil {
		return nil, err
	}
	of := map[string]event.Pod{}
	for _, a := range readResults(sees, files) {
		for _, name := range a.Links {
			of[name] = a.Pod
		}
	}
	return of, nil
}
