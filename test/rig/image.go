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

// PauseImage is the name of the sandbox image: its one program waits until it is told
// to end.
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

// writePauseImage packs a static binary as an image archive: one layer, one file.
func writePauseImage(pause, archive string) error {
	binary, err := os.ReadFile(pause)
	if err != nil {
		return fmt.Errorf("read the pause program: %w", err)
	}
	layer, err := tarOf(file{"pause", 0o755, binary})
	if err != nil {
		return fmt.Errorf("pack the pause layer: %w", err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       map[string]any{"Entrypoint": []string{"/pause"}},
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{
		{"Config": "config.json", "RepoTags": []string{PauseImage}, "Layers": []string{"layer.tar"}},
	})
	if err != nil {
		return err
	}
	image, err := tarOf(file{"config.json", 0o644, config}, file{"manifest.json", 0o644, manifest}, file{"layer.tar", 0o644, layer})
	if err != nil {
		return fmt.Errorf("pack the pause image: %w", err)
	}
	if err := os.WriteFile(archive, image, 0o600); err != nil {
		return fmt.Errorf("write the pause image: %w", err)
	}
	return nil
}

// linkOrCopy puts the file from at to, without copying where both are on one
// file system.
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
