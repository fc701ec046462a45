//go:build linux

package rig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// cover replaces a host directory by a rig's, in a mount visible only in its containerd's mount namespace.
type cover struct{ dir, by string }

// always are covers that no configuration changes: libcni's cache, shims before containerd 2.4.
func (p paths) always() []cover {
	return []cover{{"/var/lib/cni", p.at("cover", "cni")}, {"/run/containerd", p.at("cover", "containerd")}}
}

func (p paths) usual() []cover {
	return []cover{{"/run/nri", p.at("nri")}, {"/etc/cni/net.d", p.cniConf()}, {"/run/cniscope", p.at("run")}}
}

func (r *Rig) covers() []cover {
	all := r.always()
	if r.opts.Usual {
		all = append(all, r.usual()...)
	}
	for _, dir := range r.opts.Covers {
		all = append(all, cover{dir, r.Covered(dir)})
	}
	return all
}

// Covered is the rig's directory that covers one of Options.Covers.
func (r *Rig) Covered(dir string) string {
	return r.at("cover", strings.ReplaceAll(strings.Trim(dir, "/"), "/", "-"))
}

// onHost lists host directories that the rig needs as mount points and for kubelet cgroups.
func (r *Rig) onHost() (dirs []string) {
	for _, c := range r.covers() {
		dirs = append(dirs, c.dir)
	}
	if r.opts.Usual {
		dirs = append(dirs, kubeletParents()...)
	}
	return dirs
}

// makeOnHost creates directories and records them, so that the last rig removes them.
func makeOnHost(dirs []string) error {
	unlock, err := lockRoot()
	if err != nil {
		return err
	}
	defer unlock()
	text, err := os.ReadFile(hostFile())
	if err != nil {
		return fmt.Errorf("read what the host was like: %w", err)
	}
	var before host
	if err := json.Unmarshal(text, &before); err != nil {
		return fmt.Errorf("%s: %w", hostFile(), err)
	}
	for _, dir := range dirs {
		before.Made = append(before.Made, missing(dir)...)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make a folder on the host: %w", err)
		}
	}
	if text, err = json.Marshal(before); err != nil {
		return err
	}
	return os.WriteFile(hostFile(), text, 0o600)
}

// missing returns dir and its parents that do not exist, from the top.
func missing(dir string) []string {
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return append(missing(filepath.Dir(dir)), dir)
}
