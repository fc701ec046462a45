package install

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// programs lists possible paths. Flatcar has a read-only /usr, and /opt/bin in PATH.
func programs() []string { return []string{"/usr/local/bin/cniscope", "/opt/bin/cniscope"} }

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
			break // no PATH has a missing directory
		}
		err = unfit(t.existing(dir), t.live())
		if err == nil {
			return path, nil
		}
		why = errors.Join(why, fmt.Errorf("%s: %w", dir, err))
	}
	return "", fmt.Errorf("no directory for programs: %w; nothing was changed; run %s", why, daemonSet)
}

func (t tree) existing(dir string) string {
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := t.disk.Stat(dir); err == nil {
			break
		}
	}
	return dir
}

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

func (t tree) is(name string) bool { return slices.Contains(t.release(), name) }

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
