package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/cniscope/cniscope/configs"
	"github.com/cniscope/cniscope/pkg/disk"
)

type desired struct {
	path string
	*content
	insertion *insertion
	// replace makes an existing file that was not installed an error.
	replace bool
}

type wish struct {
	files   []desired
	notes   []string
	program string
	config  string // containerd's main file
	version Version
	nri     nri
	address string
}

func (t tree) wish(ctx context.Context, o Options, m *manifest) (*wish, error) {
	w := &wish{address: defaultAddress, nri: nri{enabled: true, socket: defaultSocket, plugins: defaultPlugins}}
	networks := defaultNetworks
	if t.crio() {
		o.NoContainerd = true
		w.address = crioAddress
		w.note("the runtime here is CRI-O, and nothing of it is changed: its NRI is on since 1.30, unless [crio.nri] " +
			"enable_nri in /etc/crio says otherwise (cniscope doctor looks)")
	}
	p := t.platform()
	if p != nil && p.sealed {
		return nil, p.sealedError()
	}
	if p != nil && o.ContainerdConfig != "" && o.ContainerdConfig != p.config {
		p = nil // another containerd
	}
	o = o.found(ctx, t, p)
	w.config = o.config()
	c, err := t.containerd(ctx, o, m, w, p)
	if err != nil && !o.NoContainerd {
		return nil, err
	}
	if err == nil {
		w.nri, w.address, networks = c.nri(), c.address(), c.networks()
	}
	if t.packaged() {
		return w, t.wishPackaged(w, o)
	}
	if w.program, err = t.program(); err != nil {
		return nil, err
	}
	binary, err := disk.ReadFile(t.disk, o.Program)
	if err != nil {
		return nil, fmt.Errorf("cannot read the program to install: %w", err)
	}
	w.add(desired{path: w.program, content: &content{data: binary, mode: 0o755}, replace: true})
	w.add(desired{path: optionsFile, content: &content{
		data: []byte(options(w.nri.socket, w.address, networks)),
		mode: 0o600,
	}})
	if o.As == Plugin {
		w.add(desired{
			path: filepath.Join(w.nri.plugins, pluginName), content: &content{data: binary, mode: 0o755},
			replace: true,
		})
		return w, nil
	}
	if found, err := t.at(unitFile, true); err == nil && found != nil && found.to == "/dev/null" {
		return nil, fmt.Errorf("%s is masked: run systemctl unmask cniscope first", unitFile)
	}
	unit := strings.ReplaceAll(configs.Unit, programs()[0], w.program)
	w.add(desired{path: unitFile, content: &content{data: []byte(unit), mode: 0o644}})
	w.add(desired{path: enabledLink, content: &content{to: unitFile}})
	return w, nil
}

func (w *wish) add(d desired)                { w.files = append(w.files, d) }
func (w *wish) note(format string, a ...any) { w.notes = append(w.notes, fmt.Sprintf(format, a...)) }

func options(socket, address, networks string) string {
	text := configs.Options
	for _, o := range []struct{ key, usual, is string }{
		{"socket", defaultSocket, socket}, {"socket", defaultAddress, address}, {"conf_dir", defaultNetworks, networks},
	} {
		if o.is != o.usual {
			text = strings.Replace(text, fmt.Sprintf("\n#%s = %q\n", o.key, o.usual), fmt.Sprintf("\n%s = %q\n", o.key, o.is), 1)
		}
	}
	return text
}

func (t tree) containerd(ctx context.Context, o Options, m *manifest, w *wish, p *platform) (*configuration, error) {
	main := o.config()
	over, err := t.without(m, main)
	if err != nil {
		return nil, err
	}
	c, err := t.load(main, 0, over)
	if err != nil {
		return nil, err
	}
	if w.version, err = t.version(ctx, o, m, c); errors.Is(err, errVersion) {
		return nil, fmt.Errorf("%w; set --containerd-version, such as 2.4", err)
	} else if err != nil {
		return nil, err
	}
	c.major = w.version.Major
	if o.NoContainerd {
		return c, nil
	}
	return t.complete(o, c, w, p, over)
}

func (t tree) without(m *manifest, main string) (overlay, error) {
	over := overlay{}
	for _, e := range m.Files {
		c, err := t.read(e.Path)
		switch {
		case err != nil:
			return nil, err
		case e.Insertion != nil && c != nil:
			text, _ := e.Insertion.remove(c.data)
			over[e.Path] = c.with(text)
		case filepath.Base(e.Path) == dropInName || e.Path == main && c.digest() == e.Digest:
			over[e.Path] = nil
		}
	}
	return over, nil
}

func (t tree) complete(o Options, c *configuration, w *wish, p *platform, over overlay) (*configuration, error) {
	if err := w.possible(o, c); err != nil {
		return nil, err
	}
	sections := c.lacking(w.version)
	if len(sections) == 0 {
		return c, nil
	}
	text, err := lines(sections)
	if err != nil {
		return nil, fmt.Errorf("cannot write a drop-in for containerd: %w", err)
	}
	if p != nil {
		return nil, p.refuse(text)
	}
	return t.extend(o, c, w, over, text)
}

func (w *wish) possible(o Options, c *configuration) error {
	if file, is := c.disabled(nriPlugin); is {
		return fmt.Errorf("%s: disabled_plugins has %q, which no drop-in can undo: remove it there, or leave containerd as "+
			"it is with --no-containerd", file, nriPlugin)
	}
	if n := c.nri(); n.closed && o.As == Service {
		return fmt.Errorf("%s: NRI is closed to plugins that connect (disable_connections = true): take that line out, or "+
			"use --as plugin", n.from)
	}
	if file, is := c.disabled("io.containerd.grpc.v1.cri", "cri"); is {
		w.note("%s switches CRI off (disabled_plugins): no pod of Kubernetes goes through this containerd", file)
	}
	if !w.version.hasNRI() {
		w.note("containerd %s has no NRI: every call is traced with the identity that CNI is given", w.version.Text)
		if o.As == Plugin {
			return errors.New("--as plugin needs containerd 1.7 or later: use --as service")
		}
	}
	return nil
}

func (t tree) extend(o Options, c *configuration, w *wish, over overlay, text string) (*configuration, error) {
	main := o.config()
	if v := c.version(); v < 2 {
		return nil, fmt.Errorf("%s has version %d of containerd's configuration (the line `version = 2` is missing), which "+
			"drop-ins cannot be added to: migrate it first (https://containerd.io/docs/main/man/containerd-config.toml.5)",
			main, v)
	}
	path, imported := c.dropIn()
	drop := desired{path: path, content: &content{data: []byte(dropInText(c.version(), w.version, text)), mode: 0o644}}
	over[path] = drop.content
	if !imported {
		edit, err := t.edit(o, main, path, over)
		if err != nil {
			return nil, err
		}
		over[main] = edit.content
		w.add(edit)
	}
	w.add(drop)
	after, err := t.load(main, c.major, over)
	if err != nil {
		return nil, err
	}
	if n := after.nri(); !n.enabled && w.version.hasNRI() {
		return nil, fmt.Errorf("%s is read after our drop-in %s and switches NRI off again: take `disable` out of its "+
			"section %s", n.from, path, nriPlugin)
	}
	return after, nil
}

func (t tree) edit(o Options, main, dropIn string, over overlay) (desired, error) {
	old, ok := over[main]
	if !ok {
		var err error
		if old, err = t.read(main); err != nil {
			return desired{}, err
		}
	}
	if old == nil {
		text := "# Written by cniscope install: containerd's defaults, and what is imported.\nversion = 2\n" +
			importsLine(dropIn) + "\n"
		return desired{path: main, content: &content{data: []byte(text), mode: 0o644}}, nil
	}
	if !o.EditConfig {
		return desired{}, fmt.Errorf("%s does not import drop-ins. Add this line above its first [table], or have it added "+
			"with --edit-config:\n\n  %s", main, importsLine(dropIn))
	}
	text, in := insertImport(old.data, dropIn)
	return desired{path: main, content: old.with(text), insertion: &in}, nil
}

func (o Options) found(ctx context.Context, t tree, p *platform) Options {
	switch {
	case o.ContainerdConfig != "":
	case p != nil:
		o.ContainerdConfig = p.config
	case t.live():
		if pid, _, err := running(ctx, defaultAddress); err == nil {
			o.ContainerdConfig = configOf(pid)
		}
	}
	return o
}
