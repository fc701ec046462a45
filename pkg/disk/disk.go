// Package disk holds the operations on files that the spool, the installer, recordings and the options are made
// of. They go through an interface so that tests can have each of them fail in turn (pkg/disk/disktest).
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// FS is a place for files. Its methods are those of os and of *os.Root: names are paths of the system, or below
// the folder that Private has opened. It is safe for concurrent use.
type FS interface {
	OpenFile(name string, flag int, mode fs.FileMode) (File, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	// Attributes returns the extended attributes, by name, that a file's next version is to have, too; nil where
	// there are none. Those that the kernel or a program made of its bytes are not among them: hashes, signatures,
	// capabilities.
	Attributes(name string) (map[string][]byte, error)
	Mkdir(name string, mode fs.FileMode) error
	Chmod(name string, mode fs.FileMode) error
	Rename(from, to string) error
	Link(from, to string) error
	Symlink(to, name string) error
	Remove(name string) error
	RemoveAll(name string) error
	// Private opens a folder in which nobody else can put anything, as private.Dir does, as a place of its own.
	Private(dir string) (Folder, error)
}

// Folder is an open folder. Nothing outside it is reached through it.
type Folder interface {
	FS
	io.Closer
	Name() string
}

// File is an open file. Its methods are those of *os.File, and two more.
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
	// Lock keeps the file to this process until it is closed. It fails with ErrLocked if another one has it.
	Lock() error
	// SetAttribute gives it an extended attribute.
	SetAttribute(name string, value []byte) error
}

// ErrLocked is returned if another process has a file locked.
var ErrLocked = errors.New("another process has it locked")

// Open opens a file for reading.
func Open(in FS, name string) (File, error) { return in.OpenFile(name, os.O_RDONLY, 0) }

// OpenRegular opens a file for reading, and fails where it is not a regular one. It never waits, as opening a pipe does.
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

// Kind names what a file is, with its article.
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

// ReadFile returns what is in a file.
func ReadFile(in FS, name string) ([]byte, error) {
	f, err := Open(in, name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// SyncFolder has the names in a folder written to the disk. File systems that cannot do that for a folder do it
// unasked, or never.
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
