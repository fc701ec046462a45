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

type tree struct {
	root   string
	disk   disk.FS
	failed *error
}

func newTree(root string, on disk.FS) tree { return tree{root, disk.Or(on), new(error)} }

func (t tree) live() bool { return filepath.Clean(t.root) == "/" }

// file returns the path on disk with links resolved, which stay inside an image.
func (t tree) file(path string) (string, error) {
	file, err := securejoin.SecureJoinVFS(t.root, path, t.disk)
	if err != nil {
		return "", fmt.Errorf("finding %s below %s: %w", path, t.root, err)
	}
	return file, nil
}

// locate is file, but does not follow a last link if isLink.
func (t tree) locate(path string, isLink bool) (string, error) {
	if !isLink {
		return t.file(path)
	}
	dir, err := t.file(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

func (t tree) at(path string, isLink bool) (*content, error) {
	file, err := t.locate(path, isLink)
	if err != nil {
		return nil, err
	}
	return readContent(t.disk, file)
}

// exists counts lookup errors as missing; sound returns them.
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

// sound returns a failed lookup, after which a plan would rest on guesses.
func (t tree) sound() error {
	if *t.failed != nil {
		return fmt.Errorf("cannot read the installed files: %w", *t.failed)
	}
	return nil
}

func (t tree) read(path string) (*content, error) { return t.at(path, false) }

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

func (t tree) missing(dir string) (dirs []string) {
	for ; dir != "/" && dir != "." && (!t.exists(dir) || dir == stateFolder && t.abandoned(dir)); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

// abandoned reports whether a crashed installation made dir: private, with only remains.
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

type content struct {
	data     []byte
	mode     fs.FileMode
	to       string // target of a link
	uid, gid int
	// attributes are independent of the content: access control lists, SELinux label, user attributes.
	attributes map[string][]byte
}

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
		err = fmt.Errorf("%s is not a file (%s); remove or rename it", file, info.Mode())
	}
	return c, err
}

// digest ignores the mode, which the operator may change.
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

func (c *content) isText() bool {
	return c == nil || c.to != "" || !strings.ContainsRune(string(c.data[:min(len(c.data), 8000)]), 0)
}
