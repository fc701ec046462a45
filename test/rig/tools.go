//go:build linux

package rig

import (
	"fmt"
	"os"
	"path/filepath"
)

// ErrNoTools means that the real components are not built.
var ErrNoTools error = noTools{}

type noTools struct{}

func (noTools) Error() string {
	return "run `make tools` (containerd, runc, CNI plugins) or `make tools-jaeger` first"
}

// NotBuilt makes tests skip.
func (noTools) NotBuilt() {}

// Tools returns the directory of the real components: test/tools/bin of the working directory's repository. It fails
// with ErrNoTools if a named program is missing.
func Tools(programs ...string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test", "tools")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no test/tools above the working directory: %w", ErrNoTools)
		}
	}
	bin := filepath.Join(dir, "test", "tools", "bin")
	for _, p := range programs {
		if _, err := os.Stat(filepath.Join(bin, p)); err != nil {
			return "", fmt.Errorf("%s is not built: %w", p, ErrNoTools)
		}
	}
	return bin, nil
}

func programsOf(o Options) []string {
	if o.CRIO {
		return []string{"crio/crio", "crio/copyimg", "crio/pinns", "runc", "pause", "cni/bridge", "cni/loopback"}
	}
	return runtimePrograms
}

var runtimePrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "pause", "cni/bridge", "cni/loopback"}
