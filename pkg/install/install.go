// Package install installs and removes cniscope on a node: program, options, systemd unit or NRI plugin, and missing
// parts of containerd's configuration.
//
// A Plan describes the changes; Apply makes all or none. Files that others made or changed stay, by digests in a
// manifest. containerd is never restarted.
package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// New plans an installation.
func New(ctx context.Context, o Options) (*Plan, error) {
	t := newTree(o.Root, o.Disk)
	if o.As != Service && o.As != Plugin {
		return nil, fmt.Errorf("--as %s: want %s or %s", o.As, Service, Plugin)
	}
	before, err := t.manifest()
	if err != nil {
		return nil, err
	}
	w, err := t.wish(ctx, o, before)
	if err != nil {
		return nil, err
	}
	if w.version.From == remembered {
		o.ContainerdVersion = w.version.Text
	}
	p := &Plan{
		tree: t, options: o, before: before, wish: w,
		manifest: &manifest{Version: manifestVersion, Choice: o.Choice, Folders: slices.Clone(before.Folders)},
	}
	wanted := func(e entry) bool {
		return slices.ContainsFunc(w.files, func(d desired) bool { return d.path == e.Path })
	}
	for _, e := range slices.Backward(before.Files) {
		if wanted(e) {
			continue
		}
		remove := func(e entry) error { return p.remove(e, false) }
		if t.packaged() && ofPackage(e) {
			remove = p.makeWay
		}
		if err := remove(e); err != nil {
			return nil, err
		}
	}
	for _, d := range w.files {
		if err := p.install(d); err != nil {
			return nil, err
		}
	}
	if err := p.advise(); err != nil {
		return nil, err
	}
	p.Notes = append(p.Notes, w.notes...)
	if before.Choice.Tracing != "" {
		p.Notes = append(p.Notes, "containerd no longer exports its own spans by cniscope install: docs/traces.md lists "+
			"the lines to add by hand")
	}
	if len(p.manifest.Files) == 0 { // a package, and containerd needs nothing
		if err := p.drop(before); err != nil {
			return nil, err
		}
		return p, p.record()
	}
	p.folders(manifestFile)
	return p, errors.Join(p.record(), t.sound())
}

// NewRemoval plans the removal of installed files below o.Root; with purge, also changed ones.
func NewRemoval(o Options, purge bool) (*Plan, error) {
	t, root := newTree(o.Root, o.Disk), o.Root
	m, err := t.manifest()
	if err != nil {
		return nil, err
	}
	switch {
	case len(m.Files) > 0:
	case t.packaged():
		return nil, fmt.Errorf("cniscope install has added nothing here; the program is of a %s package: remove that",
			t.packager())
	default:
		return nil, fmt.Errorf("cniscope is not installed: there is no %s", filepath.Join(root, manifestFile))
	}
	o.Choice = m.Choice
	p := &Plan{tree: t, before: m, options: o}
	for _, e := range slices.Backward(m.Files) {
		if err := p.remove(e, purge); err != nil {
			return nil, err
		}
	}
	if err := p.drop(m); err != nil {
		return nil, err
	}
	return p, p.record()
}

func (p *Plan) drop(m *manifest) error {
	p.manifest = nil
	for _, dir := range m.Folders {
		file, err := p.tree.file(dir)
		if err != nil {
			return err
		}
		p.unwanted = append(p.unwanted, file)
	}
	return nil
}

// Apply makes the planned changes and starts services, or undoes everything. It returns notes for the operator.
func (p *Plan) Apply(ctx context.Context) (notes []string, err error) {
	release, err := lockTree(p.tree.root, p.tree.live())
	if err != nil {
		return nil, err
	}
	defer release()
	s, err := p.services(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.before(ctx); err != nil {
		return nil, err
	}
	tx, err := begin(p.tree.disk, p.changes)
	if err != nil {
		return nil, undone(err, "nothing was changed", s.back(ctx))
	}
	notes, err = s.after(ctx)
	if err != nil {
		return nil, undone(err, "everything is as it was before", tx.undo(), s.back(ctx))
	}
	if err := errors.Join(tx.clean(), tx.removeFolders(p.unwanted)); err != nil {
		notes = append(notes, "everything is in place, but not all is tidied up: "+err.Error())
	}
	return append(notes, p.leftovers()...), nil
}

func undone(err error, so string, more ...error) error {
	if again := errors.Join(more...); again != nil {
		return fmt.Errorf("%w; undoing it failed, too: %w", err, again)
	}
	return fmt.Errorf("%w; %s", err, so)
}

func (p *Plan) leftovers() (notes []string) {
	if p.manifest != nil {
		return nil
	}
	for _, dir := range p.before.Folders {
		if p.tree.exists(dir) && !strings.HasPrefix(dir, stateFolder+"/") {
			notes = append(notes, fmt.Sprintf("%s holds files that were not installed by cniscope, and stays",
				filepath.Join(p.tree.root, dir)))
		}
	}
	return notes
}
