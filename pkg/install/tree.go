package install

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/cniscope/cniscope/pkg/disk"
)

// tree is where the paths of a node lie: below /, or below the folder of an image that is being built.
type tree struct {
	root string
	disk disk.FS
	// failed is why something could not be looked at, the first of it.
	failed *error
}

func newTree(root string, on disk.FS) tree { return tree{root, disk.Or(on), new(error)} }

// live reports whether this is the tree that runs, with its containerd and its systemd.
func (t tree) live() bool { return filepath.Clean(t.root) == "/" }

// file is where path is to be found on disk, links followed. Links of an image lead to
// places inside it, never out of it.
func (t tree) file(path string) (string, error) {
	file, err := securejoin.SecureJoinVFS(t.root, path, t.disk)
	if err != nil {
		return "", fmt.Errorf("finding %s below %s: %w", path, t.root, err)
	}
	return file, nil
}

// locate is file, but of a path that is a link itself only the folder is followed.
func (t tree) locate(path string, isLink bool) (string, error) {
	if !isLink {
		return t.file(path)
	}
	dir, err := t.file(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// at returns what is at path, which is a link itself if isLink; nil if nothing is.
func (t tree) at(path string, isLink bool) (*content, error) {
	file, err := t.locate(path, isLink)
	if err != nil {
		return nil, err
	}
	return readContent(t.disk, file)
}

// exists reports whether there is anything at path. What cannot be looked at is not there, and sound says so.
func (t tree) exists(path string) bool {
	file, err := t.file(path)
	if err == nil {
		_, err = t.disk.Stat(file)
	}
	if err != nil && *t.failed == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		*t.failed = err
	}
	return err == nil
}

// sound returns an error if something could not be looked at: a plan would be made of guesses.
func (t tree) sound() error {
	if *t.failed != nil {
		return fmt.Errorf("looking at what is there: %w", *t.failed)
	}
	return nil
}

// read returns what is at path; nil if nothing is.
func (t tree) read(path string) (*content, error) { return t.at(path, false) }

// glob lists the files that a pattern with * matches, as paths of the tree.
func (t tree) glob(pattern string) ([]string, error) {
	dir, err := t.file(filepath.Dir(pattern))
	if err != nil {
		return nil, err
	}
	entries, err := t.disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		fits, err := filepath.Match(filepath.Base(pattern), e.Name())
		if err != nil {
			return nil, err
		}
		if fits {
			found = append(found, filepath.Join(filepath.Dir(pattern), e.Name()))
		}
	}
	return found, nil
}

// missing are dir and the folders above it, as far as they do not exist, from the top.
func (t tree) missing(dir string) (dirs []string) {
	for ; dir != "/" && dir != "." && (!t.exists(dir) || dir == stateFolder && t.abandoned(dir)); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// abandoned reports whether a folder was made by an installation that a crash ended: it is as one makes it, readable
// by nobody else, and holds nothing but what a crash leaves. One that somebody made before is not.
func (t tree) abandoned(dir string) bool {
	file, err := t.file(dir)
	if err != nil {
		return false
	}
	info, err := t.disk.Stat(file)
	if err != nil || info.Mode().Perm() != stateMode {
		return false
	}
	entries, err := t.disk.ReadDir(file)
	return err == nil && !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() != staging })
}

// content is a file, or a link.
type content struct {
	data []byte
	mode fs.FileMode
	to   string // where a link leads
	// uid and gid are who it belongs to.
	uid, gid int
	// attributes are the extended ones that belong to a file rather than to its bytes: access
	// control lists, SELinux' label, the operator's own.
	attributes map[string][]byte
}

// with returns other bytes in place of a file's own; everything else stays.
func (c content) with(data []byte) *content {
	c.data = data
	return &c
}

func readContent(on disk.FS, file string) (*content, error) {
	info, err := on.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c := &content{mode: info.Mode().Perm()}
	c.uid, c.gid = ownerOf(info)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		c.to, err = on.Readlink(file)
	case info.Mode().IsRegular():
		if c.data, err = disk.ReadFile(on, file); err == nil {
			c.attributes, err = on.Attributes(file)
		}
	default:
		err = fmt.Errorf("%s is in the way: it is no file (%s)", file, info.Mode())
	}
	return c, err
}

// digest reports whether two are the same. The mode plays no part: who may read a file is
// the operator's to change.
func (c *content) digest() string {
	if c == nil {
		return ""
	}
	if c.to != "" {
		return "link:" + c.to
	}
	sum := sha256.Sum256(c.data)
	return hex.EncodeToString(sum[:])
}

// isText reports whether a diff of it can be read.
func (c *content) isText() bool {
	return c == nil || c.to != "" || !strings.ContainsRune(string(c.data[:min(len(c.data), 8000)]), 0)
}
