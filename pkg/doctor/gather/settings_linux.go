package gather

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/pkg/doctor/fact"
)

// settingsIn reads Cilium's options from a folder of files named after them, as a
// ConfigMap is mounted. The folder is somebody else's: no link in it leads out of root.
func settingsIn(root, dir string) (found []fact.Setting) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil
	}
	defer r.Close()
	for _, key := range fact.CiliumSettings() {
		file := strings.TrimPrefix(filepath.Join(dir, key), "/")
		f, err := r.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		value, err := io.ReadAll(io.LimitReader(f, 64)) // "true", "strict"
		_ = f.Close()
		if err == nil {
			found = append(found, fact.Setting{Key: key, Value: fact.Clean(strings.TrimSpace(string(value))), From: "its ConfigMap, " + fact.Clean("/"+file)})
		}
	}
	return found
}

// mountedSettings finds the folder on the host, for a container that does not run now.
func mountedSettings(mounts []mount) (found []fact.Setting) {
	const dir = "/tmp/cilium/config-map"
	for _, m := range mounts {
		if rest, ok := strings.CutPrefix(dir, filepath.Clean(m.container)); ok && (rest == "" || rest[0] == '/') {
			found = append(found, settingsIn(m.host, "."+rest)...)
		}
	}
	return found
}
