package install

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// programs are where cniscope's own program may go, the first that can be: /opt/bin is in PATH where /usr is
// read-only as a whole (Flatcar).
func programs() []string { return []string{"/usr/local/bin/cniscope", "/opt/bin/cniscope"} }

// program is where cniscope's own program goes.
func (t tree) program() (string, error) {
	all := programs()
	if t.is("flatcar") {
		return all[1], nil
	}
	var why error
	for i, path := range all {
		dir, err := t.file(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		if i > 0 && t.existing(dir) != dir {
			break // where it is not there, nobody looks for programs in it
		}
		err = unfit(t.existing(dir), t.live())
		if err == nil {
			return path, nil
		}
		why = errors.Join(why, fmt.Errorf("%s: %w", dir, err))
	}
	return "", fmt.Errorf("no folder for programs: %w; nothing was changed; run %s", why, daemonSet)
}

// existing is dir, or the first folder above it that exists.
func (t tree) existing(dir string) string {
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := t.disk.Stat(dir); err == nil {
			break
		}
	}
	return dir
}

// release are the names that a system goes by, its own first: ID and ID_LIKE of os-release(5), of
// the first file that can be read.
func (t tree) release() (names []string) {
	for _, path := range []string{"/etc/os-release", "/usr/lib/os-release"} {
		c, err := t.read(path)
		if err != nil || c == nil || c.to != "" {
			continue
		}
		fields := osRelease(string(c.data))
		return append([]string{fields["ID"]}, strings.Fields(fields["ID_LIKE"])...)
	}
	return nil
}

// is reports whether the system is of that name, or made from one.
func (t tree) is(name string) bool { return slices.Contains(t.release(), name) }

// osRelease reads lines as NAME=value, NAME='value' and NAME="value", in which \ stands before
// what the shell would take for something else.
func osRelease(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		switch quote := value[:min(1, len(value))]; quote {
		case `"`, `'`:
			value, _, _ = strings.Cut(value[1:], quote)
		default:
			value, _, _ = strings.Cut(value, " ")
		}
		fields[name] = strings.ToLower(strings.ReplaceAll(value, `\`, ""))
	}
	return fields
}
