package cniconf

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/containernetworking/cni/libcni"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/text"
)

const (
	maxFiles   = 64
	maxPlugins = 64
	maxBytes   = 1 << 20
)

// Load reads a configuration directory. Networks are in the runtime's order; broken files are skipped, and reported
// with position and remedy.
func Load(dir string, d Digest) (networks []event.Network, problems []error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, []error{missing(dir, err)}
	}
	files, err := libcni.ConfFiles(dir, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return nil, []error{fmt.Errorf("cannot read the CNI configuration directory: %w", err)}
	}
	slices.Sort(files)
	if len(files) > maxFiles {
		problems = append(problems, fmt.Errorf("%s has %d configurations: only the first %d are read", dir, len(files), maxFiles))
		files = files[:maxFiles]
	}
	for _, file := range files {
		network, err := load(file, d)
		if err != nil {
			problems = append(problems, broken(file, err, len(networks) == 0))
			continue
		}
		networks = append(networks, network)
	}
	return networks, problems
}

func missing(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no CNI configuration directory %s; if containerd's conf_dir is another directory, set [cni] conf_dir to its path", text.Clean(dir, text.Bound))
	}
	return fmt.Errorf("cannot read the CNI configuration directory: %w", err)
}

// broken explains a broken file, which fails all networks (go-cni opts.go: loadFromConfDir).
func broken(file string, err error, first bool) error {
	remedy := "correct or remove it"
	if first {
		remedy = "containerd loads no network until you correct or remove this file"
	}
	return fmt.Errorf("%s: %w; %s", text.Clean(file, text.Bound), err, remedy)
}

func load(file string, d Digest) (event.Network, error) {
	raw, err := disk.ReadRegular(disk.System(), file, maxBytes)
	if err != nil {
		return event.Network{}, err
	}
	if filepath.Ext(file) != ".conflist" {
		plugin, err := libcni.NetworkPluginConfFromBytes(raw)
		if err != nil {
			return event.Network{}, position(raw, err)
		}
		return network(file, plugin.Network.Name, plugin.Network.CNIVersion, []*libcni.PluginConfig{plugin}, d)
	}
	list, err := libcni.NetworkConfFromBytes(raw)
	if err != nil {
		return event.Network{}, position(raw, err)
	}
	plugins := list.Plugins
	if !list.LoadOnlyInlinedPlugins {
		more, err := beside(file, list.Name)
		if err != nil {
			return event.Network{}, err
		}
		plugins = append(plugins, more...)
	}
	return network(file, list.Name, list.CNIVersion, plugins, d)
}

// beside reads plugins from the network's directory (libcni 1.3, unless loadOnlyInlinedPlugins).
func beside(file, name string) (plugins []*libcni.PluginConfig, err error) {
	if !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, nil // not a directory name
	}
	dir := filepath.Join(filepath.Dir(file), name)
	files, err := libcni.ConfFiles(dir, []string{".conf"})
	if err != nil {
		return nil, fmt.Errorf("its folder of plugins: %w", err)
	}
	for _, part := range files[:min(len(files), maxPlugins)] {
		raw, err := disk.ReadRegular(disk.System(), part, maxBytes)
		if err == nil {
			var plugin *libcni.PluginConfig
			if plugin, err = libcni.NetworkPluginConfFromBytes(raw); err == nil {
				plugins = append(plugins, plugin)
				continue
			}
			err = position(raw, err)
		}
		return nil, fmt.Errorf("its plugin %s: %w", text.Clean(filepath.Base(part), text.Bound), err)
	}
	return plugins, nil
}

// network copies fields without secrets.
func network(file, name, version string, plugins []*libcni.PluginConfig, d Digest) (event.Network, error) {
	if len(plugins) == 0 {
		return event.Network{}, errors.New("it has no plugins")
	}
	n := event.Network{
		Name:       clean(name),
		CNIVersion: clean(version),
		File:       clean(filepath.Base(file)),
	}
	for _, p := range plugins[:min(len(plugins), maxPlugins)] {
		n.Plugins = append(n.Plugins, event.Plugin{Type: clean(p.Network.Type), IPAM: clean(p.Network.IPAM.Type)})
	}
	n.Digest = d.of(n.CNIVersion, plugins)
	return n, nil
}

// Digest computes configurations' digests; zero computes none.
type Digest struct {
	Key    []byte
	Secret func(field string) bool
}

// of ignores formatting, and secrets: renewing one is no change, and a leaked key does not allow guessing them.
func (d Digest) of(version string, plugins []*libcni.PluginConfig) string {
	if len(d.Key) == 0 || d.Secret == nil {
		return ""
	}
	sum := hmac.New(sha256.New, d.Key)
	_, _ = io.WriteString(sum, version)
	for _, p := range plugins {
		var decoded any
		if json.Unmarshal(p.Bytes, &decoded) != nil { // libcni has parsed it
			continue
		}
		_ = json.NewEncoder(sum).Encode(d.public(decoded)) // sorts keys, drops blanks
	}
	return hex.EncodeToString(sum.Sum(nil)[:2])
}

func (d Digest) public(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for field, value := range v {
			if d.Secret(field) {
				v[field] = nil
			} else {
				v[field] = d.public(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = d.public(v[i])
		}
	}
	return v
}

func clean(s string) string { return text.Clean(s, text.Bound) }

// position adds line and column to an error, whose text shows no more than encoding/json and libcni do: a character,
// field name, or version.
func position(raw []byte, err error) error {
	said := text.Clean(err.Error(), text.Bound)
	syntax, is := errors.AsType[*json.SyntaxError](err)
	if !is {
		return errors.New(said)
	}
	before := raw[:min(max(syntax.Offset-1, 0), int64(len(raw)))] // the offset is past the wrong byte
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return positioned{fmt.Sprintf("line %d, column %d: %s", line, column, said), syntax}
}

type positioned struct {
	said string
	error
}

func (p positioned) Error() string { return p.said }

func (p positioned) Unwrap() error { return p.error }
