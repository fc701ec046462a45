package doctor

import "github.com/cniscope/cniscope/pkg/doctor/fact"

// folderLoads: the CNI folder is there, and containerd can load a network from it.
func folderLoads(f *fact.Facts) ([]Finding, error) {
	if f.Folder.Err != nil {
		return nil, f.Folder.Err
	}
	d := f.Folder.Value
	if d.Missing {
		return []Finding{{
			Level: Problem, Summary: fact.Sayf("the CNI folder %s does not exist", d.Dir),
			Evidence: append([]string{"containerd stops when it is removed; one that is made anew is not watched until containerd starts again"}, loadError(f)...),
			Remedy:   []string{"systemctl restart containerd (it makes the folder again)", "then restart the CNI's pod, which writes its configuration"},
		}}, nil
	}
	switch {
	case d.Blocking != "":
		return []Finding{{
			Level: Problem, Summary: fact.Sayf("%s cannot be read, and comes first: containerd loads no network at all", d.Blocking),
			Evidence: append(problems(d), append(order(f), loadError(f)...)...),
			Remedy:   []string{fact.Sayf("correct it, or take it away: mv %s/%s /root/", d.Dir, d.Blocking)},
		}}, nil
	case len(d.Networks) == 0:
		return []Finding{{
			Level: Problem, Summary: fact.Sayf("there is no network in %s", d.Dir),
			Evidence: append(empty(d), loadError(f)...),
			Remedy:   []string{"install a CNI, or see why its pod has not written its configuration: network-pods"},
		}}, nil
	case len(d.Problems) == 0:
		return nil, nil
	}
	level := Note // what comes after those that are used does no harm
	if f.CRI.Err == nil && (f.CRI.Value.MaxConf == 0 || f.CRI.Value.MaxConf > len(d.Networks)) {
		level = Problem
	}
	return []Finding{{
		Level: level, Summary: fact.Sayf("%s has a file that cannot be read", d.Dir),
		Evidence: append(problems(d), loadError(f)...), Remedy: []string{"correct or remove it"},
	}}, nil
}

func loadError(f *fact.Facts) []string {
	if f.CRI.Err != nil || f.CRI.Value.LastLoad == "" {
		return nil
	}
	return []string{fact.Sayf("containerd, lastCNILoadStatus: %s", f.CRI.Value.LastLoad)}
}

func problems(d fact.Folder) (said []string) {
	for _, p := range d.Problems {
		said = append(said, fact.Clean(p))
	}
	return said
}

func empty(d fact.Folder) []string {
	if len(d.Other) == 0 {
		return []string{"it is empty"}
	}
	return []string{"files that containerd does not look at (it wants .conf, .conflist, .json): " + fact.List(d.Other)}
}

// order says how the runtime reads the folder.
func order(f *fact.Facts) []string {
	d := f.Folder.Value
	var files []string
	for _, n := range d.Networks {
		files = append(files, n.File+" (network "+n.Name+")")
	}
	if len(files) == 0 {
		return nil
	}
	return []string{"after it come: " + fact.List(files)}
}
