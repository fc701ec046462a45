package disk

import (
	"io/fs"
	"os"

	"github.com/cniscope/cniscope/pkg/lock"
	"github.com/cniscope/cniscope/pkg/private"
)

// System returns this process's file system.
func System() FS { return system{} }

// Or returns in, or System for nil.
func Or(in FS) FS {
	if in == nil {
		return System()
	}
	return in
}

type system struct{}

func (system) OpenFile(name string, flag int, mode fs.FileMode) (File, error) {
	return wrap(os.OpenFile(name, flag, mode))
}

func (system) ReadDir(name string) ([]fs.DirEntry, error)        { return os.ReadDir(name) }
func (system) Stat(name string) (fs.FileInfo, error)             { return os.Stat(name) }
func (system) Lstat(name string) (fs.FileInfo, error)            { return os.Lstat(name) }
func (system) Readlink(name string) (string, error)              { return os.Readlink(name) }
func (system) Attributes(name string) (map[string][]byte, error) { return attributes(name) }
func (system) Mkdir(name string, mode fs.FileMode) error         { return os.Mkdir(name, mode) }
func (system) Chmod(name string, mode fs.FileMode) error         { return os.Chmod(name, mode) }
func (system) Rename(from, to string) error                      { return os.Rename(from, to) }
func (system) Link(from, to string) error                        { return os.Link(from, to) }
func (system) Symlink(to, name string) error                     { return os.Symlink(to, name) }
func (system) Remove(name string) error                          { return os.Remove(name) }
func (system) RemoveAll(name string) error                       { return os.RemoveAll(name) }

func (system) Private(dir string) (Folder, error) { return opened(private.Dir(dir)) }

// OpenFolder opens a directory, whatever its permissions.
func OpenFolder(dir string) (Folder, error) { return opened(os.OpenRoot(dir)) }

func opened(root *os.Root, err error) (Folder, error) {
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

func (f file) Lock() error { return lock.File(f.File) }

func (f file) SetAttribute(name string, value []byte) error {
	return setAttribute(f.File, name, value)
}
