package install

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cniscope/cniscope/pkg/disk"
	"github.com/cniscope/cniscope/test/harness"
)

type node struct {
	*testing.T
	root    string
	program string
	said    string
	disk    disk.FS // nil: the system's
}

// newNode adds the usual files.
func newNode(t *testing.T, files map[string]string) *node {
	t.Helper()
	n := &node{T: t, root: t.TempDir(), program: filepath.Join(t.TempDir(), "cniscope")}
	n.build("1")
	n.write("/etc/hostname", "node\n")
	for path, text := range files {
		n.write(path, text)
	}
	return n
}

func (n *node) build(version string) {
	n.Helper()
	harness.Check(n, os.WriteFile(n.program, []byte("\x7fELF\x00"+version), 0o755))
}

func (n *node) write(path, text string) {
	n.Helper()
	file := filepath.Join(n.root, path)
	harness.Check(n, os.MkdirAll(filepath.Dir(file), 0o755))
	harness.Check(n, os.WriteFile(file, []byte(text), 0o644))
}

func (n *node) text(path string) string {
	n.Helper()
	return string(harness.Must(os.ReadFile(filepath.Join(n.root, path)))(n))
}

func (n *node) tree() string {
	n.Helper()
	all := map[string]string{}
	harness.Check(n, filepath.WalkDir(n.root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		path, line := strings.TrimPrefix(file, n.root), fmt.Sprint(info.Mode())
		switch {
		case info.Mode().IsRegular():
			line += fmt.Sprintf(" %q", n.text(path))
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(file)
			line += " -> " + to
		}
		all[path] = line
		return nil
	}))
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintln(&b, path, all[path])
	}
	return b.String()
}

func (n *node) same(want string) {
	n.Helper()
	harness.Equal(n, n.tree(), want, "the tree has changed")
}

func (n *node) options(change func(*Options)) Options {
	o := Options{Root: n.root, Program: n.program, Choice: Choice{As: Service}, Disk: n.disk}
	if change != nil {
		change(&o)
	}
	return o
}

func (n *node) plan(change func(*Options)) *Plan {
	n.Helper()
	return harness.Must(New(n.Context(), n.options(change)))(n)
}

func (n *node) apply(p *Plan) *Plan {
	n.Helper()
	notes := harness.Must(p.Apply(n.Context()))(n)
	p.Notes = append(p.Notes, notes...)
	return p
}

func (n *node) install(change func(*Options)) *Plan {
	n.Helper()
	return n.apply(n.plan(change))
}

func (n *node) uninstall(purge bool) *Plan {
	n.Helper()
	p := harness.Must(NewRemoval(Options{Root: n.root, Disk: n.disk}, purge))(n)
	return n.apply(p)
}

func steps(p *Plan) string {
	var b strings.Builder
	for _, s := range p.Steps {
		if s.Does != Same {
			fmt.Fprintf(&b, "%s %s\n", s.Does, s.Path)
		}
	}
	return strings.TrimSpace(b.String())
}

// refused expects an error and an unchanged tree.
func (n *node) refused(change func(*Options), say ...string) {
	n.Helper()
	before := n.tree()
	p, err := New(n.Context(), n.options(change))
	if err == nil {
		_, err = p.Apply(n.Context())
	}
	if err == nil {
		n.Fatal("it was installed")
	}
	for _, s := range say {
		if !strings.Contains(err.Error(), s) {
			n.Errorf("the error lacks %q:\n%v", s, err)
		}
	}
	n.same(before)
}

func (n *node) remove(path string) {
	n.Helper()
	harness.Check(n, os.Remove(filepath.Join(n.root, path)))
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if os.Remove(filepath.Join(n.root, dir)) != nil {
			return
		}
	}
}

func (n *node) stat(path string) (fs.FileInfo, error) {
	return os.Lstat(filepath.Join(n.root, path))
}

func (n *node) link(to, path string) {
	n.Helper()
	file := filepath.Join(n.root, path)
	harness.Check(n, os.MkdirAll(filepath.Dir(file), 0o755))
	harness.Check(n, os.Symlink(to, file))
}
