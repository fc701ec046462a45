package disk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cniscope/cniscope/test/harness"
)

// Opening does not block, whatever the file became after a check.
func TestOnlyARegularFileIsOpened(t *testing.T) {
	dir := t.TempDir()
	root := harness.Must(OpenFolder(dir))(t)
	defer root.Close()
	harness.Root(t) // makes a device
	for want, make := range map[string]func(string) error{
		"":                          func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"it is a named pipe":        func(p string) error { return unix.Mkfifo(p, 0o600) },
		"it is a directory":         func(p string) error { return os.Mkdir(p, 0o700) },
		"it is a device":            func(p string) error { return unix.Mknod(p, unix.S_IFCHR|0o600, 1<<8|3) },
		"no such device or address": func(p string) error { return unix.Mknod(p, unix.S_IFSOCK|0o600, 0) },
	} {
		name := "f" + strings.ReplaceAll(want, " ", "-")
		harness.Check(t, make(filepath.Join(dir, name)))
		for where, in := range map[string]FS{name: root, filepath.Join(dir, name): System()} {
			f, err := OpenRegular(in, where)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", where, err, want)
			}
			if f != nil {
				_ = f.Close()
			}
		}
	}
}
