package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/runtime"
)

// Defaults of containerd (defaults/defaults_unix.go, nri pkg/api/defaults.go).
const (
	defaultConfig   = "/etc/containerd/config.toml"
	defaultDropIns  = "/etc/containerd/conf.d"
	defaultAddress  = "/run/containerd/containerd.sock"
	defaultSocket   = "/var/run/nri/nri.sock"
	defaultPlugins  = "/opt/nri/plugins"
	defaultNetworks = "/etc/cni/net.d"
)

const nriPlugin = "io.containerd.nri.v1.nri"

// overlay maps paths to planned content; nil is a removed file.
type overlay map[string]*content

type configuration struct {
	files []configFile
	major int // containerd's version, which decides how files are merged
	// socket is used if no file names an address.
	socket string
}

type configFile struct {
	path    string
	version int // of the format; default 1
	imports []string
	values  map[string]any
}

// load accepts a missing main file.
func (t tree) load(main string, major int, over overlay) (*configuration, error) {
	c := &configuration{major: major}
	seen := map[string]bool{}
	for pending := []string{main}; len(pending) > 0; pending = pending[1:] {
		path := pending[0]
		if seen[path] {
			continue
		}
		seen[path] = true
		found, ok := over[path]
		if !ok {
			var err error
			if found, err = t.read(path); err != nil {
				return nil, fmt.Errorf("cannot read containerd's configuration: %w", err)
			}
		}
		if found == nil {
			if path == main {
				return c, nil
			}
			return nil, fmt.Errorf("containerd's configuration imports %s, which does not exist: containerd would not start "+
				"again", path)
		}
		f, err := parse(path, found.data)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, f)
		more, err := t.imported(f, over)
		if err != nil {
			return nil, err
		}
		pending = append(pending, more...)
	}
	return c, nil
}

func parse(path string, text []byte) (configFile, error) {
	f := configFile{path: path, version: 1}
	err := toml.Unmarshal(text, &f.values)
	if wrong, is := errors.AsType[*toml.DecodeError](err); is {
		row, column := wrong.Position()
		return f, fmt.Errorf("%s:%d:%d: %s; containerd would not start with it; fix it first", path, row, column,
			strings.TrimPrefix(wrong.Error(), "toml: "))
	}
	if err != nil {
		return f, fmt.Errorf("%s: %w; fix it first", path, err)
	}
	if v, ok := f.values["version"].(int64); ok {
		f.version = int(v)
	}
	list, _ := f.values["imports"].([]any)
	for _, x := range list {
		if pattern, ok := x.(string); ok {
			// Relative to the importing file.
			if pattern = filepath.Clean(pattern); !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(path), pattern)
			}
			f.imports = append(f.imports, pattern)
		}
	}
	return f, nil
}

func (t tree) imported(f configFile, over overlay) (files []string, err error) {
	for _, pattern := range f.imports {
		if !strings.Contains(pattern, "*") {
			files = append(files, pattern)
			continue
		}
		found, err := t.glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: imports: %q: %w", f.path, pattern, err)
		}
		for path, c := range over {
			found = slices.DeleteFunc(found, func(f string) bool { return f == path })
			if ok, _ := filepath.Match(pattern, path); ok && c != nil {
				found = append(found, path)
			}
		}
		slices.Sort(found)
		files = append(files, found...)
	}
	return files, nil
}

// version returns the main file's version, the maximum of imports'. containerd 1.5 and later read version 2.
func (c *configuration) version() int {
	if len(c.files) == 0 {
		return 2
	}
	return c.files[0].version
}

// plugin returns a plugin's section and the last file that sets it. containerd 1 uses only that file; later versions
// merge all.
func (c *configuration) plugin(name string) (section map[string]any, from string) {
	section = map[string]any{}
	for _, f := range c.files {
		plugins, _ := f.values["plugins"].(map[string]any)
		next, ok := plugins[name].(map[string]any)
		if !ok {
			continue
		}
		from = f.path
		if c.major < 2 {
			section = map[string]any{}
		}
		merge(section, next)
	}
	return section, from
}

func merge(to, from map[string]any) {
	for k, v := range from {
		table, ok := v.(map[string]any)
		if old, both := to[k].(map[string]any); ok && both {
			old = maps.Clone(old)
			merge(old, table)
			v = old
		}
		to[k] = v
	}
}

func (c *configuration) disabled(plugins ...string) (file string, is bool) {
	for _, f := range c.files {
		list, _ := f.values["disabled_plugins"].([]any)
		for _, p := range plugins {
			if slices.Contains(list, any(p)) {
				return f.path, true
			}
		}
	}
	return "", false
}

func (c *configuration) text(otherwise string, ways ...[]string) string {
	for _, f := range slices.Backward(c.files) {
		for _, way := range ways {
			values := f.values
			for _, key := range way[:len(way)-1] {
				values, _ = values[key].(map[string]any)
			}
			if s, _ := values[way[len(way)-1]].(string); s != "" {
				return s
			}
		}
	}
	return otherwise
}

func (c *configuration) address() string {
	return c.text(cmp.Or(c.socket, defaultAddress),
		[]string{"plugins", "io.containerd.server.v1.grpc", "address"}, // version 4
		[]string{"grpc", "address"})
}

func (c *configuration) networks() string {
	return c.text(defaultNetworks,
		[]string{"plugins", "io.containerd.cri.v1.runtime", "cni", "conf_dir"}, // version 3
		[]string{"plugins", "io.containerd.grpc.v1.cri", "cni", "conf_dir"})
}

type nri struct {
	enabled bool
	closed  bool // plugins may not connect (disable_connections)
	socket  string
	plugins string
	from    string // last file that sets it
}

// nri is on by default since containerd 2.0.
func (c *configuration) nri() nri {
	section, from := c.plugin(nriPlugin)
	n := nri{enabled: c.major >= 2, from: from}
	if off, ok := section["disable"].(bool); ok {
		n.enabled = !off
	}
	n.closed, _ = section["disable_connections"].(bool)
	socket, _ := section["socket_path"].(string)
	plugins, _ := section["plugin_path"].(string)
	n.socket, n.plugins = cmp.Or(socket, defaultSocket), cmp.Or(plugins, defaultPlugins)
	return n
}

// Version is a containerd version and its source.
type Version struct {
	Text  string
	Major int
	minor int // -1 if unknown
	From  string
}

func (v Version) hasNRI() bool { return v.Major > 1 || v.minor < 0 || v.minor >= 7 }

var versionForm = regexp.MustCompile(`^v?([0-9]+)(?:\.([0-9]+)\S*)?$`)

func parseVersion(text, from string) (Version, error) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("%q is no version of containerd (%s): want one as 2.4.2 or 1.7", text, from)
	}
	v := Version{Text: strings.TrimPrefix(text, "v"), minor: -1, From: from}
	var err error
	if v.Major, err = strconv.Atoi(m[1]); err == nil && m[2] != "" {
		v.minor, err = strconv.Atoi(m[2])
	}
	return v, err
}

var errVersion = errors.New("cannot find containerd's version")

const remembered = "as given before"

func (t tree) version(ctx context.Context, o Options, m *manifest, c *configuration) (Version, error) {
	if o.ContainerdVersion != "" {
		return parseVersion(o.ContainerdVersion, "--containerd-version")
	}
	silent := o.config() + " does not exist"
	if t.live() {
		r, err := runtime.Ask(ctx, c.address())
		switch {
		case err == nil && r.Name == runtime.Containerd:
			return parseVersion(r.Version, c.address())
		case err == nil:
			silent = c.address() + " belongs to " + r.Name + "; " + silent
		case strings.Contains(err.Error(), c.address()):
			silent = err.Error() + "; " + silent
		default:
			silent = c.address() + ": " + err.Error() + "; " + silent
		}
	}
	if told := m.Choice.ContainerdVersion; told != "" {
		return parseVersion(told, remembered)
	}
	switch v := c.version(); {
	case v > 2:
		return Version{Text: "2", Major: 2, minor: -1, From: fmt.Sprintf("its configuration has version %d", v)}, nil
	case len(c.files) > 0:
		// Both read it, and the older one's settings suit the newer.
		return Version{Text: "1.7", Major: 1, minor: 7, From: fmt.Sprintf("its configuration has version %d", v)}, nil
	}
	return Version{}, fmt.Errorf("%w: %s", errVersion, silent)
}
