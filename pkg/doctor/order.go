package doctor

import "github.com/cniscope/cniscope/pkg/event"

// rightOneWins: of several configurations, the one that is used belongs to the CNI whose
// agent runs here.
func rightOneWins(f *Facts) ([]Finding, error) {
	if err := first(f.CRI.Err, f.Folder.Err); err != nil {
		return nil, err
	}
	d, used := f.Folder.Value, winners(f)
	ignored := d.Networks[len(used):]
	if len(ignored) == 0 {
		return nil, nil
	}
	evidence := []string{
		sayf("containerd reads .conf, .conflist and .json by name and uses the first %d: %s", f.CRI.Value.MaxConf, describe(used)),
		"ignored: " + describe(ignored),
	}
	if f.Processes.Err == nil && f.Containers.Err == nil {
		for _, n := range ignored {
			owner, ok := ownerOf(n)
			if !ok || uses(used, owner) {
				continue
			}
			if by := owner.runs(f); by != "" {
				return []Finding{{
					Level: Warning, Summary: sayf("%s is used, though %s runs here: its %s is ignored", used[0].File, owner.name, n.File),
					Evidence: append(evidence, by),
					Remedy:   []string{sayf("if %s is what this cluster uses, take the other away: mv %s/%s /root/", owner.name, d.Dir, used[0].File)},
				}}, nil
			}
		}
	}
	return []Finding{{
		Level: Note, Summary: sayf("%s has more networks than are used", d.Dir),
		Evidence: evidence, Remedy: []string{"nothing, if the first is the one that is meant; else remove it"},
	}}, nil
}

// uses tells whether one of the networks is of a CNI.
func uses(networks []event.Network, o cni) bool {
	for _, n := range networks {
		if o.owns(n) {
			return true
		}
	}
	return false
}
