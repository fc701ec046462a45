package onwindows

import (
	"encoding/json"
	"fmt"
	"slices"
)

// manifest is what was installed, from the first to the last.
type manifest struct {
	Version int     `json:"version"` // of the manifest's form
	Choice  Choice  `json:"choice"`
	Things  []entry `json:"things"`
}

const manifestVersion = 1

// entry is one thing that was made or changed.
type entry struct {
	Thing
	Digest string `json:"digest"` // of what was written
	// Earlier are digests of what an upgrade that is not over replaces.
	Earlier []string `json:"earlier,omitempty"`
	// Before is what was there: null if nothing was.
	Before []byte `json:"before"`
	// Set are the variables that were put into an environment.
	Set []string `json:"set,omitempty"`
}

func (o Options) read(n Node) (*manifest, error) {
	text, err := n.Read(o.manifest())
	if err != nil {
		return nil, fmt.Errorf("reading what is installed: %w", err)
	}
	m := &manifest{Version: manifestVersion}
	if text == nil {
		return m, nil
	}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s: %w; if you take it away, cniscope takes what is installed for somebody else's", o.manifest(), err)
	}
	if m.Version != manifestVersion {
		return nil, fmt.Errorf("%s was written by a newer cniscope: use that one", o.manifest())
	}
	return m, nil
}

func (m *manifest) entry(t Thing) (entry, bool) {
	i := slices.IndexFunc(m.Things, func(e entry) bool { return e.Thing == t })
	if i < 0 {
		return entry{}, false
	}
	return m.Things[i], true
}

func (m *manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// with is m with what was installed before and m replaces, or takes away.
func (m *manifest) with(before *manifest) *manifest {
	both := &manifest{Version: m.Version, Choice: m.Choice}
	for _, e := range m.Things {
		if was, ours := before.entry(e.Thing); ours {
			e.Earlier = slices.DeleteFunc(append([]string{was.Digest}, was.Earlier...), func(d string) bool { return d == e.Digest })
			e.Set = append(slices.Clone(e.Set), slices.DeleteFunc(slices.Clone(was.Set), func(v string) bool { return slices.Contains(e.Set, v) })...)
		}
		both.Things = append(both.Things, e)
	}
	for _, e := range before.Things {
		if _, stays := m.entry(e.Thing); !stays {
			both.Things = append(both.Things, e)
		}
	}
	return both
}

// wrote reports whether a thing is as an installation made it.
func (e entry) wrote(now []byte) bool {
	is := digest(now)
	return is == e.Digest || slices.Contains(e.Earlier, is)
}

// undone is what an environment would be without what was set in it.
func (e entry) undone(now []byte) []byte {
	if e.wrote(now) {
		return e.Before
	}
	return unset(now, e.Set, e.Before)
}

// record plans the manifest's own change: before what comes and, of a removal, after what goes, so that wherever
// a crash strikes it names what is there. The folder it lies in comes first. Of an upgrade it names what was installed
// and what will be, until that is over.
func (p *Plan) record(n Node, o Options, before, m *manifest) error {
	now, err := n.Read(o.manifest())
	if err != nil {
		return err
	}
	if m == nil {
		p.changes = append(p.changes, change{o.manifest(), now, nil})
		return nil
	}
	meanwhile, err := m.with(before).text()
	if err != nil {
		return err
	}
	next, err := m.text()
	if err != nil || same(now, next) && len(p.changes) == 0 {
		return err
	}
	if !same(now, meanwhile) {
		isFolder := func(c change) bool { return c.Thing == Thing{Folder, o.folder()} }
		at := slices.IndexFunc(p.changes, isFolder) + 1
		p.changes = slices.Insert(p.changes, at, change{o.manifest(), now, meanwhile})
	}
	if !same(meanwhile, next) {
		p.changes = append(p.changes, change{o.manifest(), meanwhile, next})
	}
	return nil
}

// State is how something that was installed is now: "as installed", "changed since" or "missing".
type State struct {
	Thing
	Is string
}

// States returns how everything that was installed is now; none if nothing was.
func States(n Node, o Options) (all []State, err error) {
	m, err := o.read(n)
	if err != nil {
		return nil, err
	}
	for _, e := range m.Things {
		now, err := n.Read(e.Thing)
		is := "as installed"
		switch {
		case err != nil:
			is = err.Error()
		case now == nil:
			is = "missing"
		case !e.wrote(now):
			is = "changed since"
		}
		all = append(all, State{e.Thing, is})
	}
	return all, nil
}
