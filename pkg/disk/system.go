package disk

import (
	"io/fs"
	"os"

	"github.com/cniscope/cniscope/pkg/private"
)

// System is this process's file system.
type System struct{}

var _ FS = System{}

// Or returns in, or System for nil.
func Or(in FS) FS {
	if in == nil {
		return System{}
	}
	return in
}

// OpenFile is os.OpenFile.
func (System) OpenFile(name string, flag int, mode fs.FileMode) (File, error) {
	return wrap(os.OpenFile(name, flag, mode))
}

// ReadDir is os.ReadDir.
func (System) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// Stat is os.Stat.
func (System) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Lstat is os.Lstat.
func (System) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Readlink is os.Readlink.
func (System) Readlink(name string) (string, error) { return os.Readlink(name) }

// Attributes returns extended attributes of a file or link, except those derived from its content.
func (System) Attributes(name string) (map[string][]byte, error) { return attributes(name) }

// Mkdir is os.Mkdir.
func (System) Mkdir(name string, mode fs.FileMode) error { return os.Mkdir(name, mode) }

// Chmod is os.Chmod.
func (System) Chmod(name string, mode fs.FileMode) error { return os.Chmod(name, mode) }

// Rename is os.Rename.
func (System) Rename(from, to string) error { return os.Rename(from, to) }

// Link is os.Link.
func (System) Link(from, to string) error { return os.Link(from, to) }

// Symlink is os.Symlink.
func (System) Symlink(to, name string) error { return os.Symlink(to, name) }

// Remove is os.Remove.
func (System) Remove(name string) error { return os.Remove(name) }

// RemoveAll is os.RemoveAll.
func (System) RemoveAll(name string) error { return os.RemoveAll(name) }

// Private is private.Dir.
func (System) Private(dir string) (Folder, error) {
	root, err := private.Dir(dir)
	if err != nil {
		return nil, err
	}
	return folder{root}, nil
}

// OpenFolder opens a directory, whatever its permissions.
func OpenFolder(dir string) (Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return folder{root}, nil
}

type folder struct{ *os.Root }

func (d folder) OpenFile(name string, flag int, mode fs.FileMode) (File, error) {
	return wrap(d.Root.OpenFile(name, flag, mode))
}

func (d folder) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(d.FS(), name) }

func (d folder) Attributes(string) (map[string][]byte, error) { return nil, fs.ErrInvalid }

func (d folder) Private(string) (Folder, error) { return nil, fs.ErrInvalid }

func wrap(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

type file struct{ *os.File }

func (f file) Lock() error { return lock(f.File) }

func (f file) SetAttribute(name string, value []byte) error {
	return setAttribute(f.File, name, value)
}
