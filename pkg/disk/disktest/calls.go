package disktest

import (
	"io/fs"
	"os"

	"github.com/cniscope/cniscope/pkg/disk"
)

// OpenFile implements disk.FS.
func (d *Disk) OpenFile(name string, flag int, mode fs.FileMode) (disk.File, error) {
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

// ReadDir implements disk.FS.
func (d *Disk) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := d.fails("readdir", d.path(name)); err != nil {
		return nil, err
	}
	return d.real.ReadDir(name)
}

// Stat implements disk.FS.
func (d *Disk) Stat(name string) (fs.FileInfo, error) {
	if err := d.fails("stat", d.path(name)); err != nil {
		return nil, err
	}
	return d.real.Stat(name)
}

// Lstat implements disk.FS.
func (d *Disk) Lstat(name string) (fs.FileInfo, error) {
	if err := d.fails("lstat", d.path(name)); err != nil {
		return nil, err
	}
	return d.real.Lstat(name)
}

// Readlink implements disk.FS.
func (d *Disk) Readlink(name string) (string, error) {
	if err := d.fails("readlink", d.path(name)); err != nil {
		return "", err
	}
	return d.real.Readlink(name)
}

// Attributes implements disk.FS.
func (d *Disk) Attributes(name string) (map[string][]byte, error) {
	if err := d.fails("attributes", d.path(name)); err != nil {
		return nil, err
	}
	return d.real.Attributes(name)
}

// Mkdir implements disk.FS.
func (d *Disk) Mkdir(name string, mode fs.FileMode) error {
	return d.does(change{op: "mkdir", name: name, mode: mode}, func() error { return d.real.Mkdir(name, mode) })
}

// Chmod implements disk.FS.
func (d *Disk) Chmod(name string, mode fs.FileMode) error {
	return d.does(change{op: "chmod", name: name, mode: mode}, func() error { return d.real.Chmod(name, mode) })
}

// Rename implements disk.FS.
func (d *Disk) Rename(from, to string) error {
	return d.does(change{op: "rename", name: to, from: d.path(from)}, func() error { return d.real.Rename(from, to) })
}

// Link implements disk.FS.
func (d *Disk) Link(from, to string) error {
	return d.does(change{op: "link", name: to, from: d.path(from)}, func() error { return d.real.Link(from, to) })
}

// Symlink implements disk.FS.
func (d *Disk) Symlink(to, name string) error {
	return d.does(change{op: "symlink", name: name, from: to}, func() error { return d.real.Symlink(to, name) })
}

// Remove implements disk.FS.
func (d *Disk) Remove(name string) error {
	return d.does(change{op: "remove", name: name}, func() error { return d.real.Remove(name) })
}

// RemoveAll implements disk.FS.
func (d *Disk) RemoveAll(name string) error {
	return d.does(change{op: "removeall", name: name}, func() error { return d.real.RemoveAll(name) })
}

// Private implements disk.FS.
func (d *Disk) Private(dir string) (disk.Folder, error) {
	if err := d.fails("private", d.path(dir)); err != nil {
		return nil, err
	}
	real, err := d.real.Private(dir)
	if err != nil {
		return nil, err
	}
	return folder{&Disk{faults: d.faults, real: real, dir: dir}, real}, nil
}

type folder struct {
	*Disk
	real disk.Folder
}

func (f folder) Name() string { return f.dir }

func (f folder) Close() error {
	failed := f.fails("close", f.dir)
	if err := f.real.Close(); err != nil {
		return err
	}
	return failed
}

type file struct {
	disk.File
	disk *Disk
	node *node
	path string
}

func (f *file) Read(b []byte) (int, error) {
	if err := f.disk.fails("read", f.path); err != nil {
		return 0, err
	}
	return f.File.Read(b)
}

func (f *file) ReadAt(b []byte, at int64) (int, error) {
	if err := f.disk.fails("read", f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, at)
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

func (f *file) Sync() error {
	if err := f.disk.fails("sync", f.path); err != nil {
		return err
	}
	f.note(change{op: "sync"})
	return nil
}

func (f *file) Close() error {
	failed := f.disk.fails("close", f.path)
	if err := f.File.Close(); err != nil {
		return err
	}
	return failed
}

func (f *file) Stat() (fs.FileInfo, error) {
	if err := f.disk.fails("stat", f.path); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f *file) Truncate(size int64) error {
	if err := f.disk.fails("truncate", f.path); err != nil {
		return err
	}
	err := f.File.Truncate(size)
	if err == nil {
		f.note(change{op: "truncate", at: size})
	}
	return err
}

func (f *file) Chmod(mode fs.FileMode) error {
	if err := f.disk.fails("chmod", f.path); err != nil {
		return err
	}
	err := f.File.Chmod(mode)
	if err == nil {
		f.note(change{op: "chmod", mode: mode})
	}
	return err
}

func (f *file) Chown(uid, gid int) error {
	if err := f.disk.fails("chown", f.path); err != nil {
		return err
	}
	return f.File.Chown(uid, gid)
}

func (f *file) Lock() error {
	if err := f.disk.fails("lock", f.path); err != nil {
		return err
	}
	return f.File.Lock()
}

func (f *file) SetAttribute(name string, value []byte) error {
	if err := f.disk.fails("attribute", f.path); err != nil {
		return err
	}
	return f.File.SetAttribute(name, value)
}
