package disktest

import (
	"io"
	"io/fs"
	"os"

	"github.com/cniscope/cniscope/pkg/disk"
)

func (d *fsys) OpenFile(name string, flag int, mode fs.FileMode) (disk.File, error) {
	op := "open"
	if flag&os.O_CREATE != 0 {
		op = "create"
	}
	path := d.path(name)
	if err := d.fails(op, path); err != nil {
		return nil, err
	}
	f, err := d.real.OpenFile(name, flag, mode)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return &file{File: f, disk: d, node: d.journal.opened(path, flag, mode), path: path}, nil
}

func (d *fsys) ReadDir(name string) ([]fs.DirEntry, error) {
	return unless(d.fails("readdir", d.path(name)), func() ([]fs.DirEntry, error) { return d.real.ReadDir(name) })
}

func (d *fsys) Stat(name string) (fs.FileInfo, error) {
	return unless(d.fails("stat", d.path(name)), func() (fs.FileInfo, error) { return d.real.Stat(name) })
}

func (d *fsys) Lstat(name string) (fs.FileInfo, error) {
	return unless(d.fails("lstat", d.path(name)), func() (fs.FileInfo, error) { return d.real.Lstat(name) })
}

func (d *fsys) Readlink(name string) (string, error) {
	return unless(d.fails("readlink", d.path(name)), func() (string, error) { return d.real.Readlink(name) })
}

func (d *fsys) Attributes(name string) (map[string][]byte, error) {
	return unless(d.fails("attributes", d.path(name)), func() (map[string][]byte, error) {
		return d.real.Attributes(name)
	})
}

// unless makes a call that has not failed already.
func unless[T any](failed error, call func() (T, error)) (none T, err error) {
	if failed != nil {
		return none, failed
	}
	return call()
}

func (d *fsys) Mkdir(name string, mode fs.FileMode) error {
	return d.does(change{op: "mkdir", name: name, mode: mode}, func() error { return d.real.Mkdir(name, mode) })
}

func (d *fsys) Chmod(name string, mode fs.FileMode) error {
	return d.does(change{op: "chmod", name: name, mode: mode}, func() error { return d.real.Chmod(name, mode) })
}

func (d *fsys) Rename(from, to string) error {
	return d.does(change{op: "rename", name: to, from: d.path(from)}, func() error { return d.real.Rename(from, to) })
}

func (d *fsys) Link(from, to string) error {
	return d.does(change{op: "link", name: to, from: d.path(from)}, func() error { return d.real.Link(from, to) })
}

func (d *fsys) Symlink(to, name string) error {
	return d.does(change{op: "symlink", name: name, from: to}, func() error { return d.real.Symlink(to, name) })
}

func (d *fsys) Remove(name string) error {
	return d.does(change{op: "remove", name: name}, func() error { return d.real.Remove(name) })
}

func (d *fsys) RemoveAll(name string) error {
	return d.does(change{op: "removeall", name: name}, func() error { return d.real.RemoveAll(name) })
}

func (d *fsys) Private(dir string) (disk.Folder, error) {
	real, err := unless(d.fails("private", d.path(dir)), func() (disk.Folder, error) { return d.real.Private(dir) })
	if err != nil {
		return nil, err
	}
	return folder{&fsys{faults: d.faults, real: real, dir: dir}, real}, nil
}

type folder struct {
	*fsys
	real disk.Folder
}

func (f folder) Name() string { return f.dir }

func (f folder) Close() error { return closed(f.fails("close", f.dir), f.real) }

// closed closes also where the call fails, as the kernel does.
func closed(failed error, c io.Closer) error {
	if err := c.Close(); err != nil {
		return err
	}
	return failed
}

type file struct {
	disk.File
	disk *fsys
	node *node
	path string
}

func (f *file) Read(b []byte) (int, error) {
	return unless(f.disk.fails("read", f.path), func() (int, error) { return f.File.Read(b) })
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	return unless(f.disk.fails("read", f.path), func() (int, error) { return f.File.ReadAt(b, at) })
}

func (f *file) Write(b []byte) (int, error) {
	at := int64(0)
	if f.node != nil {
		at = f.node.written
	}
	n, err := f.write(b, at, f.File.Write)
	if f.node != nil {
		f.node.written += int64(n)
	}
	return n, err
}

func (f *file) WriteAt(b []byte, at int64) (int, error) {
	return f.write(b, at, func(b []byte) (int, error) { return f.File.WriteAt(b, at) })
}

func (f *file) write(b []byte, at int64, write func([]byte) (int, error)) (int, error) {
	fault := f.disk.call("write", f.path)
	switch {
	case fault == Short:
		b = b[:len(b)/2]
	case fault != None:
		return 0, fault.err("write", f.path)
	}
	n, err := write(b)
	f.note(change{op: "write", at: at, data: append([]byte(nil), b[:n]...)})
	if err == nil {
		err = fault.err("write", f.path)
	}
	return n, err
}

func (f *file) note(c change) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	c.node, c.name = f.node, f.path
	f.disk.journal.note(c)
}

// does makes a call, unless it fails, and notes it.
func (f *file) does(c change, do func() error) error {
	if err := f.disk.fails(c.op, f.path); err != nil {
		return err
	}
	err := do()
	if err == nil && changes[c.op] {
		f.note(c)
	}
	return err
}

func (f *file) Sync() error {
	return f.does(change{op: "sync"}, func() error { return nil })
}

func (f *file) Close() error { return closed(f.disk.fails("close", f.path), f.File) }

func (f *file) Stat() (fs.FileInfo, error) {
	return unless(f.disk.fails("stat", f.path), f.File.Stat)
}

func (f *file) Truncate(size int64) error {
	return f.does(change{op: "truncate", at: size}, func() error { return f.File.Truncate(size) })
}

func (f *file) Chmod(mode fs.FileMode) error {
	return f.does(change{op: "chmod", mode: mode}, func() error { return f.File.Chmod(mode) })
}

func (f *file) Chown(uid, gid int) error {
	return f.does(change{op: "chown"}, func() error { return f.File.Chown(uid, gid) })
}

func (f *file) Lock() error { return f.does(change{op: "lock"}, f.File.Lock) }

func (f *file) SetAttribute(name string, value []byte) error {
	return f.does(change{op: "attribute"}, func() error { return f.File.SetAttribute(name, value) })
}
