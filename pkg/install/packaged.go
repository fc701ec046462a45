package install

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cniscope/cniscope/pkg/config"
)

// Paths of the deb and rpm packages (configs/release).
const (
	packagedProgram = "/usr/bin/cniscope"
	packagedUnit    = "/usr/lib/systemd/system/cniscope.service"
	packageKind     = "/usr/share/cniscope/package" // one word, the kind of package
)

// packaged reports whether a package owns program and unit. An installation then configures containerd only.
func (t tree) packaged() bool { return t.exists(packagedProgram) && t.exists(packagedUnit) }

func (t tree) packager() string {
	if !t.packaged() {
		return ""
	}
	if c, err := t.read(packageKind); err == nil && c != nil {
		return strings.TrimSpace(string(c.data))
	}
	return "package"
}

// NewTakeOver plans that program, unit and NRI plugin below root give way to a package's; nil if nothing is installed.
func NewTakeOver(root string) (*Plan, error) {
	t := newTree(root, nil)
	m, err := t.manifest()
	if err != nil || len(m.Files) == 0 {
		return nil, err
	}
	after := *m
	after.Files, after.Choice.As = nil, Service
	p := &Plan{tree: t, before: m, options: Options{Root: root, Choice: m.Choice}, manifest: &after}
	for _, e := range slices.Backward(m.Files) {
		if !ofPackage(e) {
			after.Files = append(after.Files, e)
		} else if err := p.makeWay(e); err != nil {
			return nil, err
		}
	}
	slices.Reverse(after.Files)
	if len(after.Files) == 0 {
		if err := p.drop(m); err != nil {
			return nil, err
		}
	}
	if err := p.record(); err != nil || !p.Changes() {
		return nil, err
	}
	return p, nil
}

func ofPackage(e entry) bool {
	return !forContainerd(e.Path) || filepath.Base(e.Path) == pluginName
}

// makeWay removes a file that the package replaces. A changed unit stays with its program, because systemd prefers it.
func (p *Plan) makeWay(e entry) error {
	if e.Path == optionsFile {
		return nil
	}
	changed, err := p.tree.unitChanged(p.before)
	if err != nil {
		return err
	}
	if changed && filepath.Base(e.Path) != pluginName {
		p.manifest.Files = append(p.manifest.Files, e)
		if e.Path == unitFile {
			p.Notes = append(p.Notes, unitFile+" was changed since it was installed: it stays, with its program, and systemd "+
				"prefers it to the package's. "+
				"Put your changes into a drop-in (systemctl edit cniscope), remove that file, and run cniscope install")
		}
		return nil
	}
	return p.remove(e, true)
}

func (t tree) unitChanged(m *manifest) (bool, error) {
	e, ours := m.entry(unitFile)
	if !ours {
		return false, nil
	}
	now, err := t.read(unitFile)
	return now != nil && now.digest() != e.Digest, err
}

// AdvisePackaged returns notes for the operator, and names another running cniscope.
func AdvisePackaged(ctx context.Context, root string) (notes []string) {
	s, err := Look(ctx, root, nil)
	if err != nil {
		return nil
	}
	if r := s.Running; r != nil && r.PID != s.unitPID {
		notes = append(notes, fmt.Sprintf("Another cniscope observes this node: process %d (%s). The service waits until "+
			"that process exits; keep one of the two.%s",
			r.PID, r.by(), r.ending()))
	}
	byHand := !slices.ContainsFunc(s.Files, func(f File) bool { return f.Path == unitFile })
	if t := newTree(root, nil); byHand && t.exists(unitFile) {
		notes = append(notes, unitFile+" was put there by hand, and systemd prefers it to the package's unit: remove it, "+
			"then run systemctl daemon-reload and systemctl restart cniscope")
	}
	if c := s.Containerd; c.Version != "" && !c.NRI && !s.crio {
		notes = append(notes, fmt.Sprintf("containerd %s has NRI off: pods are traced without labels, IPs and the "+
			"sandbox-running event. To switch it on:\n\n  cniscope install%s\n  systemctl restart containerd",
			c.Version, s.edits))
	}
	return notes
}

func (r *Running) by() string {
	if r.StartedBy != "" {
		return r.StartedBy
	}
	return "of version " + r.Version
}

func (r *Running) ending() string {
	if !r.Plugin {
		return ""
	}
	return fmt.Sprintf(" It goes with the next restart of containerd, or at once by: kill %d", r.PID)
}

func (t tree) wishPackaged(w *wish, o Options) error {
	if o.As == Plugin {
		return fmt.Errorf("a %s package has installed cniscope here as a service: for --as %s remove that first",
			t.packager(), Plugin)
	}
	w.note("a %s package brings cniscope's program, options and unit here: only containerd's part is looked after",
		t.packager())
	return nil
}

func (t tree) optionsNow() (config.Options, error) {
	return config.Source{Base: config.Default(), Path: filepath.Join(t.root, optionsFile), Optional: true}.Load()
}
