//go:build linux

package rig

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// PauseImage is the sandbox image, whose program waits for a signal.
const PauseImage = "localhost/cniscope-pause:rig"

type file struct {
	name string
	mode int64
	data []byte
}

func tarOf(files ...file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// writeImage packs a static binary as an image archive with one layer.
func writeImage(program, name, archive string) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read the program of image %s: %w", name, err)
	}
	base := filepath.Base(program)
	layer, err := tarOf(file{base, 0o755, binary})
	if err != nil {
		return fmt.Errorf("pack the layer of image %s: %w", name, err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/" + base}, "Env": []string{"PATH=/:/usr/sbin:/usr/bin:/sbin:/bin"}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		return err
	}
	image, err := tarOf(file{"config.json", 0o644, config}, file{"manifest.json", 0o644, manifest}, file{"layer.tar", 0o644, layer})
	if err != nil {
		return fmt.Errorf("pack image %s: %w", name, err)
	}
	if err := os.WriteFile(archive, image, 0o600); err != nil {
		return fmt.Errorf("write image %s: %w", name, err)
	}
	return nil
}

func linkOrCopy(from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// WritePauseImage packs PauseImage for a containerd outside the rig.
func WritePauseImage(archive string) error {
	tools, err := Tools("pause")
	if err != nil {
		return err
	}
	return writeImage(filepath.Join(tools, "pause"), PauseImage, archive)
}
