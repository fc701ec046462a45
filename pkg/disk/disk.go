// Package disk is the file system of spool, installer, recordings and options. Tests fail each call (disktest).
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/cniscope/cniscope/pkg/lock"
)

// FS has the methods of os and *os.Root for system paths, or names in Private's directory. Safe for concurrent use.
type FS interface {
	OpenFile(name string, flag int, mode fs.FileMode) (File, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	// Attributes returns extended attributes of a file or link, except those derived from its content.
	Attributes(name string) (map[string][]byte, error)
	Mkdir(name string, mode fs.FileMode) error
	Chmod(name string, mode fs.FileMode) error
	Rename(from, to string) error
	Link(from, to string) error
	Symlink(to, name string) error
	Remove(name string) error
	RemoveAll(name string) error
	// Private is private.Dir.
	Private(dir string) (Folder, error)
}

// Folder is an open directory; names stay inside.
type Folder interface {
	FS
	io.Closer
	Name() string
}

// File is an open file, like *os.File.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
	Sync() error
	Truncate(size int64) error
	Chmod(mode fs.FileMode) error
	Chown(uid, gid int) error
	// Lock holds until the file is closed, or fails with ErrLocked.
	Lock() error
	SetAttribute(name string, value []byte) error
}

// ErrLocked means that another process holds the lock.
var ErrLocked = lock.ErrTaken

// Open opens a file for reading.
func Open(in FS, name string) (File, error) { return in.OpenFile(name, os.O_RDONLY, 0) }

// OpenRegular opens only regular files, and does not block on a pipe.
func OpenRegular(in FS, name string) (File, error) {
	f, err := in.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	is, err := f.Stat()
	if err == nil && !is.Mode().IsRegular() {
		err = fmt.Errorf("it is %s", Kind(is.Mode()))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// ReadRegular reads a regular file of up to most bytes. It opens no device and does not block on a pipe.
func ReadRegular(in FS, name string, most int64) ([]byte, error) {
	info, err := in.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", name)
	}
	f, err := OpenRegular(in, name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err = errors.Join(err, f.Close()); err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%q is longer than %d bytes", name, most)
	}
	return data, err
}

// Kind names a file's type, with article.
func Kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a regular file"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// ReadFile reads a whole file.
func ReadFile(in FS, name string) ([]byte, error) {
	f, err := Open(in, name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// SyncFolder syncs a directory's names, if supported.
func SyncFolder(in FS, name string) error {
	f, err := Open(in, name)
	if err != nil {
		return err
	}
	err = f.Sync()
	if unsupported(err) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
