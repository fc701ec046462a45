package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/cniscope/cniscope/pkg/config"
)

// A Plan describes an installation or a removal.
type Plan struct {
	Steps []Step   // unchanged files included
	Notes []string // for the operator

	tree     tree
	options  Options
	manifest *manifest // the new one, or nil
	before   *manifest
	changes  []change
	unwanted []string // created directories, now unused
	wish     *wish    // nil for a removal
	recorded *content // the previous manifest
}

// Step is the change of one file.
type Step struct {
	Path string `json:"path"`
	Does Does   `json:"does"`
	Why  string `json:"why,omitempty"`
}

// Does is the action of a step.
type Does string

// Actions of steps. Kept files were made or changed by others.
const (
	Creates  Does = "new"
	Replaces Does = "changed"
	Removes  Does = "removed"
	Restores Does = "restored"
	Keeps    Does = "kept"
	Same     Does = "as it is"
)

// Changes reports whether the plan changes anything.
func (p *Plan) Changes() bool { return len(p.changes) > 0 }

func (p *Plan) step(path string, before, after *content, does Does, why string) error {
	p.Steps = append(p.Steps, Step{path, does, why})
	if does == Same || does == Keeps {
		return nil
	}
	return p.change(path, before, after)
}

func (p *Plan) change(path string, before, after *content) error {
	isLink := before != nil && before.to != "" || after != nil && after.to != ""
	file, err := p.tree.locate(path, isLink)
	p.changes = append(p.changes, change{path: path, file: file, before: before, after: after})
	return err
}

func (p *Plan) install(d desired) error {
	now, err := p.tree.at(d.path, d.to != "")
	if err != nil {
		return err
	}
	e, ours := p.before.entry(d.path)
	if p.before.halfDone(d.path, now) { // the old content or the new
		e.Digest, ours = now.digest(), ours && now != nil
	}
	if d.replace && now != nil && !ours && now.digest() != d.digest() {
		return fmt.Errorf("%s is there and was not installed by cniscope install; remove it, then install", d.path)
	}
	does, why := decide(d, now, e, ours)
	switch {
	case d.insertion != nil:
		e = entry{Path: d.path, Insertion: d.insertion}
	case does == Creates || does == Replaces:
		e.Path, e.Digest = d.path, d.digest()
	case does == Same && ours:
		e.Digest = d.digest()
	}
	if e.Path != "" {
		p.manifest.Files = append(p.manifest.Files, e)
		p.folders(d.path)
	}
	return p.step(d.path, now, d.content, does, why)
}

func decide(d desired, now *content, e entry, ours bool) (Does, string) {
	switch {
	case now == nil && ours && d.path == enabledLink:
		return Keeps, "it was disabled since it was installed; systemctl enable --now cniscope"
	case now == nil:
		return Creates, ""
	case now.digest() == d.digest():
		return Same, ""
	case d.insertion != nil:
		return Replaces, "one line is added"
	case ours && now.digest() != e.Digest:
		return Keeps, "it was changed since it was installed"
	case ours:
		return Replaces, ""
	default:
		return Keeps, "it was there before cniscope was installed"
	}
}

func (p *Plan) folders(path string) {
	for _, dir := range p.tree.missing(filepath.Dir(path)) {
		if !slices.Contains(p.manifest.Folders, dir) {
			p.manifest.Folders = append(p.manifest.Folders, dir)
		}
	}
}

func (p *Plan) remove(e entry, purge bool) error {
	now, err := p.tree.at(e.Path, e.Path == enabledLink)
	if err != nil || now == nil {
		return err
	}
	switch {
	case e.Insertion != nil:
		text, found := e.Insertion.remove(now.data)
		if !found {
			return p.step(e.Path, now, now, Keeps, "the line that was added is not there any more")
		}
		return p.step(e.Path, now, now.with(text), Restores, "the line that was added is taken out")
	case now.digest() != e.Digest && !purge && !p.before.halfDone(e.Path, now):
		return p.step(e.Path, now, now, Keeps, "it was changed since it was installed; rm "+
			filepath.Join(p.tree.root, e.Path)+" removes it")
	default:
		if e.Before != "" {
			p.Notes = append(p.Notes, fmt.Sprintf("an older cniscope replaced %s; what was there before is %s", e.Path,
				filepath.Join(beforeFolder, e.Before)))
		}
		return p.step(e.Path, now, nil, Removes, "")
	}
}

func forContainerd(path string) bool {
	return !slices.Contains(append(programs(), optionsFile, unitFile, enabledLink), path)
}

// record changes the manifest first to old and new files with their possible contents, for recovery after a crash, and
// at last to the final one.
func (p *Plan) record() error {
	now, err := p.tree.read(manifestFile)
	if err != nil {
		return err
	}
	file, err := p.tree.file(manifestFile)
	if err != nil {
		return err
	}
	p.recorded = now
	if len(p.changes) > 0 {
		interim := p.interim().content()
		p.changes = slices.Insert(p.changes, 0, change{
			path: manifestFile, file: file, before: now, after: interim,
			interim: true,
		})
		now = interim
	}
	var next *content
	if p.manifest != nil {
		next = p.manifest.content()
	}
	if now.digest() != next.digest() {
		p.changes = append(p.changes, change{path: manifestFile, file: file, before: now, after: next})
	}
	return nil
}

func (p *Plan) interim() *manifest {
	m := *p.before
	if p.manifest != nil {
		m = *p.manifest
		m.Files = slices.Clone(m.Files)
		for _, e := range p.before.Files {
			if _, stays := m.entry(e.Path); !stays {
				m.Files = append(m.Files, e)
			}
		}
	}
	m.Unfinished = map[string]string{}
	for _, c := range p.changes {
		if _, ours := m.entry(c.path); !ours {
			continue
		}
		if c.after != nil {
			m.Unfinished[c.path] = c.before.digest()
		} else {
			m.Unfinished[c.path] = ""
		}
	}
	return &m
}

func (p *Plan) advise() error {
	if err := p.adviseOptions(); err != nil {
		return err
	}
	if p.options.NoContainerd {
		return nil
	}
	over := overlay{}
	for _, c := range p.changes {
		over[c.path] = c.after
	}
	c, err := p.tree.load(p.wish.config, p.wish.version.Major, over)
	if err != nil {
		return err
	}
	if n := c.nri(); !n.enabled && p.wish.version.hasNRI() {
		p.wish.note("NRI stays off, since %s says so: every call is traced with the identity that CNI is given", n.from)
	}
	return nil
}

func (p *Plan) adviseOptions() error {
	const endpoint = "say where the spans go: endpoint in [export.otlp] of " + optionsFile
	if slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Path == optionsFile && s.Does == Creates }) {
		p.wish.note(endpoint)
		return nil
	}
	now, err := p.tree.read(optionsFile)
	if err != nil || now == nil { // a package's options may have been removed
		return err
	}
	o, err := config.Parse(optionsFile, now.data)
	if err != nil {
		p.wish.note("%v", err)
		return nil
	}
	if o.Export.OTLP.Endpoint == "" && o.Export.File.Path == "" {
		p.wish.note(endpoint)
	}
	if p.options.As == Service && o.NRI.Enabled && o.NRI.Socket != p.wish.nri.socket {
		p.wish.note("%s: containerd's NRI socket is %s: set that as socket in [nri]", optionsFile, p.wish.nri.socket)
	}
	return nil
}

// Diff returns a unified diff; of programs, size and digest.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, c := range p.changes {
		if c.interim {
			continue
		}
		if c.path == manifestFile {
			c.before = p.recorded
		}
		from, to := "a"+c.path, "b"+c.path
		if c.before == nil {
			from = "/dev/null"
		}
		if c.after == nil {
			to = "/dev/null"
		}
		// Options may contain secrets.
		secret := c.path == optionsFile && c.after == nil
		if c.before.isText() && c.after.isText() && !secret {
			fmt.Fprint(&b, udiff.Unified(from, to, c.before.text(), c.after.text()))
			continue
		}
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
		b.WriteString(c.before.summary("-") + c.after.summary("+"))
	}
	return b.String()
}

func (c *content) summary(sign string) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %d bytes, sha256 %s\n", sign, len(c.data), c.digest())
}

func (c *content) text() string {
	switch {
	case c == nil:
		return ""
	case c.to != "":
		return "link to " + c.to + "\n"
	default:
		return string(c.data)
	}
}
