package disktest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

type journal struct {
	folder string
	before map[string]*node // initial state, by path
	now    map[string]*node
	done   []change
}

type node struct {
	mode    fs.FileMode
	data    []byte // initial content
	to      string
	written int64 // offset of Write
}

type change struct {
	op         string
	name, from string
	node       *node
	mode       fs.FileMode
	at         int64
	data       []byte
}

func (j *journal) begin(folder string) error {
	j.folder, j.before = folder, map[string]*node{}
	j.now = map[string]*node{}
	if folder == "" {
		return nil
	}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		n := &node{mode: info.Mode()}
		switch {
		case info.Mode().IsRegular():
			n.data, err = os.ReadFile(path)
		case info.Mode()&fs.ModeSymlink != 0:
			n.to, err = os.Readlink(path)
		}
		j.before[path] = n
		return err
	})
	j.now = maps.Clone(j.before)
	return err
}

func (j *journal) opened(path string, flag int, mode fs.FileMode) *node {
	if n := j.now[path]; n != nil || flag&os.O_CREATE == 0 {
		return n
	}
	c := change{op: "create", name: path, node: &node{mode: mode}}
	j.note(c)
	return c.node
}

func (j *journal) note(c change) {
	switch c.op {
	case "mkdir":
		c.node = &node{mode: fs.ModeDir | c.mode}
	case "symlink":
		c.node = &node{mode: fs.ModeSymlink, to: c.from}
	case "rename", "link":
		c.node = j.now[c.from]
	case "chmod":
		if n := j.now[c.name]; n != nil {
			n.mode = n.mode.Type() | c.mode
		}
	}
	j.done = append(j.done, c)
	c.apply(j.now)
}

func (c change) apply(names map[string]*node) {
	parent := names[filepath.Dir(c.name)]
	switch c.op {
	case "create", "mkdir", "symlink", "link":
		if parent != nil && names[c.name] == nil {
			names[c.name] = c.node
		}
	case "rename":
		// The new name may be on disk even if the old never was.
		if parent == nil || c.node == nil {
			return
		}
		if names[c.from] == c.node {
			delete(names, c.from)
		}
		names[c.name] = c.node
	case "remove", "removeall":
		for path := range names {
			if path == c.name || strings.HasPrefix(path, c.name+"/") {
				delete(names, path)
			}
		}
	}
}

func (c change) ofNames() bool {
	return slices.Contains([]string{"create", "mkdir", "symlink", "link", "rename", "remove", "removeall"}, c.op)
}

// Fate is a power failure's effect on an unsynced change.
type Fate int

// Lost changes did not happen. Zeroed data has only its length; Zeroed names are kept.
const (
	Kept Fate = iota
	Lost
	Zeroed
)

// PowerCut writes a state to the directory that a disk may have after a power failure. Data synced with its file and
// names with their directory are there; other changes get their own fates, in order. POSIX guarantees no more.
func (d *Disk) PowerCut(to string, fate func() Fate) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	j := &d.journal
	names, data := maps.Clone(j.before), map[*node][]byte{}
	for i, c := range j.done {
		how := Kept
		if !c.durable(j.done[i+1:]) {
			how = fate()
		}
		switch {
		case how == Lost:
		case c.ofNames():
			c.apply(names)
		case c.op == "write" && c.node != nil:
			data[c.node] = c.write(held(data, c.node), how)
		case c.op == "truncate" && c.node != nil:
			data[c.node] = resize(held(data, c.node), c.at)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(names)) {
		n := names[path]
		if path != j.folder && names[filepath.Dir(path)] == nil {
			continue
		}
		if err := n.put(filepath.Join(to, strings.TrimPrefix(path, j.folder)), held(data, n)); err != nil {
			return err
		}
	}
	return nil
}

func (c change) durable(later []change) bool {
	return slices.ContainsFunc(later, func(s change) bool {
		switch {
		case s.op != "sync":
			return false
		case c.ofNames():
			return s.name == filepath.Dir(c.name) || c.op == "rename" && s.name == filepath.Dir(c.from)
		}
		return s.node == c.node
	})
}

func held(data map[*node][]byte, n *node) []byte {
	if b, changed := data[n]; changed {
		return b
	}
	return slices.Clone(n.data)
}

func (c change) write(b []byte, how Fate) []byte {
	b = resize(b, max(int64(len(b)), c.at+int64(len(c.data))))
	if how == Kept {
		copy(b[c.at:], c.data)
	}
	return b
}

func resize(b []byte, size int64) []byte {
	if grow := size - int64(len(b)); grow > 0 {
		return append(b, make([]byte, grow)...)
	}
	return b[:size]
}

func (n *node) put(path string, data []byte) error {
	switch {
	case n.mode.IsDir():
		if err := os.Mkdir(path, 0o700); err != nil && !os.IsExist(err) {
			return err
		}
	case n.mode&fs.ModeSymlink != 0:
		return os.Symlink(n.to, path)
	default:
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return os.Chmod(path, n.mode.Perm())
}
