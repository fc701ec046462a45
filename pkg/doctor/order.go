package doctor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
)

// rightOneWins: of several configurations, the one that is used belongs to the CNI whose
// agent runs here.
func rightOneWins(f *fact.Facts) ([]Finding, error) {
	if err := cmp.Or(f.CRI.Err, f.Folder.Err); err != nil {
		return nil, err
	}
	d, used := f.Folder.Value, fact.Winners(f)
	ignored := d.Networks[len(used):]
	if len(ignored) == 0 {
		return nil, nil
	}
	evidence := []string{
		fact.Sayf("containerd reads .conf, .conflist and .json by name and uses the first %d: %s", f.CRI.Value.MaxConf, describe(used)),
		"ignored: " + describe(ignored),
	}
	if f.Processes.Err == nil && f.Containers.Err == nil {
		for _, n := range ignored {
			owner, ok := fact.OwnerOf(n)
			if !ok || uses(used, owner) {
				continue
			}
			if by := runs(owner, f); by != "" {
				return []Finding{{
					Level: Warning, Summary: fact.Sayf("%s is used, though %s runs here: its %s is ignored", used[0].File, owner.Name, n.File),
					Evidence: append(evidence, by),
					Remedy:   []string{fact.Sayf("if %s is what this cluster uses, take the other away: mv %s/%s /root/", owner.Name, d.Dir, used[0].File)},
				}}, nil
			}
		}
	}
	return []Finding{{
		Level: Note, Summary: fact.Sayf("%s has more networks than are used", d.Dir),
		Evidence: evidence, Remedy: []string{"nothing, if the first is the one that is meant; else remove it"},
	}}, nil
}

// uses reports whether one of the networks is of a CNI.
func uses(networks []event.Network, o fact.CNI) bool {
	for _, n := range networks {
		if o.Owns(n) {
			return true
		}
	}
	return false
}

// runs says what of a CNI runs here, or is meant to; empty if nothing.
func runs(c fact.CNI, f *fact.Facts) string {
	for _, p := range f.Processes.Value {
		if p.HostNet && slices.Contains(c.Agents, p.Name) {
			return fact.Sayf("process %d is %s", p.PID, p.Name)
		}
	}
	for _, k := range f.Containers.Value {
		if k.SandboxReady && (slices.Contains(c.Agents, k.Name) || slices.Contains(c.Agents, strings.TrimPrefix(k.Name, "install-"))) {
			return fact.Sayf("container %s of pod %s/%s is %s", k.Name, k.Namespace, k.Pod, k.State)
		}
	}
	return ""
}
