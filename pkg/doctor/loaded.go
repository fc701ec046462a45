package doctor

import (
	"cmp"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

// loadedIsCurrent: what containerd has loaded is what the folder says. containerd reads
// the folder again when something in it is written or removed, but not when a file is
// moved into it (internal/cri/server/cni_conf_syncer.go ignores fsnotify's Create).
func loadedIsCurrent(f *fact.Facts) ([]Finding, error) {
	if err := cmp.Or(f.CRI.Err, f.Folder.Err); err != nil {
		return nil, err
	}
	if f.Folder.Value.Blocking != "" || f.Folder.Value.Missing {
		return nil, notApplicable("the folder cannot be loaded: see cni-folder")
	}
	says, has := fact.Winners(f), f.CRI.Value.Loaded
	different := len(says) != len(has)
	for i := 0; !different && i < len(says); i++ {
		different = differs(says[i], has[i], f.Folder.Value.Digests[says[i].File])
	}
	if !different {
		return nil, nil
	}
	level := Warning
	if len(has) == 0 {
		level = Problem // no pod gets a network
	}
	dir := f.Folder.Value.Dir
	return []Finding{{
		Level: level, Summary: fact.Sayf("containerd does not use what %s says now", dir),
		Evidence: append([]string{"the folder says: " + describe(says), "containerd has loaded: " + describe(fact.Networks(has))}, loadError(f)...),
		Remedy: []string{
			fact.Sayf("have containerd read it again, it does so when a file is removed: touch %s/.reload && rm %s/.reload", dir, dir),
			"whoever writes it should write into the folder, not move a file there",
		},
	}}, nil
}

func differs(file event.Network, has fact.Loaded, digest string) bool {
	if digest != "" && has.Digest != "" {
		return file.Name != has.Name || digest != has.Digest
	}
	if file.Name != has.Name || file.CNIVersion != has.CNIVersion || len(file.Plugins) != len(has.Plugins) {
		return true
	}
	for i, p := range file.Plugins {
		if p != has.Plugins[i] {
			return true
		}
	}
	return false
}

// describe says networks with their chains.
func describe(all []event.Network) string {
	if len(all) == 0 {
		return "no network"
	}
	var said []string
	for _, n := range all {
		chain := ""
		for i, p := range n.Plugins {
			if i > 0 {
				chain += "+"
			}
			chain += p.Type
			if p.IPAM != "" {
				chain += "(" + p.IPAM + ")"
			}
		}
		from := ""
		if n.File != "" {
			from = " from " + n.File
		}
		said = append(said, n.Name+" "+chain+from)
	}
	return fact.List(said)
}
