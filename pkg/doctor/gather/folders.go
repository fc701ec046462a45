package gather

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/pkg/doctor/fact"
	"github.com/cniscope/cniscope/pkg/event"
	"github.com/cniscope/cniscope/pkg/runtime"
)

func readFolders(ctx context.Context, r fact.Runtime, o fact.Options, c *fact.CRI) error {
	switch r.Name {
	case runtime.CRIO:
		return crioFolders(ctx, o.Address, viewOf(r.PID, contained()).path("/etc/crio"), c)
	case runtime.Docker:
		c.Said = "its command line"
		dockerFolders(r.PID, c)
	}
	return nil
}

type crioNetwork struct {
	Crio struct {
		Network struct {
			Default    string   `toml:"cni_default_network"`
			NetworkDir string   `toml:"network_dir"`
			PluginDir  string   `toml:"plugin_dir"` // before 1.14
			PluginDirs []string `toml:"plugin_dirs"`
		} `toml:"network"`
	} `toml:"crio"`
}

func crioFolders(ctx context.Context, socket, files string, c *fact.CRI) error {
	c.Said = "its configuration (crio status config)"
	text, err := crioConfig(ctx, socket)
	var conf crioNetwork
	if err == nil {
		err = toml.Unmarshal(text, &conf)
	}
	if err != nil {
		c.Said = "/etc/crio"
		if conf, err = crioFiles(files); err != nil {
			return fmt.Errorf("cannot read CRI-O's configuration: %w", err)
		}
	}
	n := conf.Crio.Network
	c.Default = fact.Clean(n.Default)
	if n.NetworkDir != "" {
		c.ConfDir = filepath.Clean(n.NetworkDir)
	}
	dirs := n.PluginDirs
	if n.PluginDir != "" {
		dirs = append([]string{n.PluginDir}, dirs...)
	}
	if len(dirs) > 0 {
		c.BinDirs = nil
	}
	for _, dir := range dirs {
		c.BinDirs = append(c.BinDirs, filepath.Clean(dir))
	}
	return nil
}

func crioConfig(ctx context.Context, socket string) ([]byte, error) {
	answer, err := get(ctx, "http://crio/config", func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return io.ReadAll(io.LimitReader(answer.Body, 1<<20))
}

func crioFiles(dir string) (conf crioNetwork, err error) {
	parts, err := filepath.Glob(filepath.Join(dir, "crio.conf.d", "*"))
	if err != nil {
		return conf, err
	}
	slices.Sort(parts)
	for _, file := range append([]string{filepath.Join(dir, "crio.conf")}, parts...) {
		info, err := os.Stat(file)
		if errors.Is(err, os.ErrNotExist) || err == nil && info.Mode()&os.ModeDevice != 0 { // a link to /dev/null
			continue
		}
		text, err := read(file)
		if err == nil {
			err = toml.Unmarshal(text, &conf)
		}
		if err != nil {
			return conf, fmt.Errorf("%s: %w", file, err)
		}
	}
	return conf, nil
}

func read(file string) ([]byte, error) { return disk.ReadRegular(disk.System(), file, fileMax) }

const fileMax = 4 << 20

func loadedFrom(dir string, networks []event.Network) (all []fact.Loaded) {
	for _, n := range networks {
		l := fact.Loaded{Network: event.Network{Name: n.Name, CNIVersion: n.CNIVersion}}
		text, _ := read(filepath.Join(dir, n.File)) // read before
		var list struct{ Plugins []json.RawMessage }
		if json.Unmarshal(text, &list) != nil || len(list.Plugins) == 0 {
			list.Plugins = []json.RawMessage{text}
		}
		for _, p := range list.Plugins {
			addPlugin(&l, p)
		}
		all = append(all, l)
	}
	return all
}
