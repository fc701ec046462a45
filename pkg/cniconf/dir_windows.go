package cniconf

import (
	"os"
	"path/filepath"
)

// DefaultDir is the conf_dir of containerd.
func DefaultDir() string {
	return filepath.Join(os.Getenv("ProgramFiles"), "containerd", "cni", "conf")
}
