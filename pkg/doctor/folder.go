package doctor

// folderLoads: the CNI folder is there, and containerd can load a network from it.
func folderLoads(f *Facts) ([]Finding, error) {
	if f.Folder.Err != nil {
		return nil, f.Folder.Err
	}
	d := f.Folder.Value
	if d.Missing {
		return []Finding{{
			Level: Problem, Summary: sayf("the CNI folder %s does not exist", d.Dir),
			Evidence: append([]string{"containerd's CRI does not work without it; one that is made anew is not watched until containerd starts again"}, loadError(f)...),
			Remedy:   []string{sayf("mkdir -p %s", d.Dir), "systemctl restart containerd", "then have the CNI's pod write its configuration: restart it"},
		}}, nil
	}
	var found []Finding
	if d.Blocking != "" {
		found = append(found, Finding{
			Level: Problem, Summary: sayf("%s cannot be read, and comes first: containerd loads no network at all", d.Blocking),
			Evidence: append(problems(d), append(order(f), loadError(f)...)...),
			Remedy:   []string{sayf("correct it, or take it away: mv %s/%s /root/", d.Dir, d.Blocking)},
		})
	} else if len(d.Networks) == 0 {
		found = append(found, Finding{
			Level: Problem, Summary: sayf("there is no network in %s", d.Dir),
			Evidence: append(empty(d), loadError(f)...),
			Remedy:   []string{"install a CNI, or see why its pod has not written its configuration: network-pods"},
		})
	} else if len(d.Problems) > 0 {
		level := Note // what comes after those that are used does no harm
		if f.CRI.Err == nil && (f.CRI.Value.MaxConf == 0 || f.CRI.Value.MaxConf > len(d.Networks)) {
			level = Problem
		}
		found = append(found, Finding{
			Level: level, Summary: sayf("%s has a file that cannot be read", d.Dir),
			Evidence: append(problems(d), loadError(f)...), Remedy: []string{"correct or remove it"},
		})
	}
	return found, nil
}

func loadError(f *Facts) []string {
	if f.CRI.Err != nil || f.CRI.Value.LastLoad == "" {
		return nil
	}
	return []string{sayf("containerd, lastCNILoadStatus: %s", f.CRI.Value.LastLoad)}
}

func problems(d Folder) (said []string) {
	for _, p := range d.Problems {
		said = append(said, clean(p))
	}
	return said
}

func empty(d Folder) []string {
	if len(d.Other) == 0 {
		return []string{"it is empty"}
	}
	return []string{"files that containerd does not look at (it wants .conf, .conflist, .json): " + list(d.Other)}
}

// order says how the runtime reads the folder.
func order(f *Facts) []string {
	d := f.Folder.Value
	var files []string
	for _, n := range d.Networks {
		files = append(files, n.File+" (network "+n.Name+")")
	}
	if len(files) == 0 {
		return nil
	}
	return []string{"after it come: " + list(files)}
}
