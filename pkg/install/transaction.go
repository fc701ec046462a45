package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/cniscope/cniscope/pkg/disk"
)

// change replaces before by after; a nil after removes the file.
type change struct {
	path          string // for messages
	file          string // on disk
	before, after *content
	interim       bool // a later change replaces it
}

// staging is beside the destination. NRI and containerd's imports ignore directories, so they never find a partial
// file.
const staging = ".cniscope-install"

// A transaction makes all changes or none. It first writes all files beside their destination, which finds full disks
// and unwritable directories; the renames need no space and are reversible.
type transaction struct {
	disk    disk.FS
	changes []change
	done    int      // changes in place
	folders []string // created, from the top
	stages  []string // staging directory of each change
}

// begin makes the changes, or none on an error. The caller ends it with undo or keep.
func begin(on disk.FS, changes []change) (t *transaction, err error) {
	t = &transaction{disk: on, changes: changes}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.undo())
		}
	}()
	known := 0
	if len(changes) > 0 && changes[0].interim {
		known = 1 // the manifest names everything from here on
	}
	if err := t.make(0, known); err != nil {
		return t, err
	}
	return t, t.make(known, len(changes))
}

func (t *transaction) make(from, to int) error {
	for i := from; i < to; i++ {
		if err := t.prepare(i, t.changes[i]); err != nil {
			return fmt.Errorf("%s: %w", t.changes[i].path, err)
		}
	}
	for i := from; i < to; i++ {
		if err := t.place(i, t.changes[i]); err != nil {
			return fmt.Errorf("%s: %w", t.changes[i].path, err)
		}
	}
	return nil
}

const stateMode, folderMode fs.FileMode = 0o700, 0o755

func (t *transaction) prepare(i int, c change) error {
	dir, mode := filepath.Dir(c.file), folderMode
	if c.path == manifestFile {
		mode = stateMode
	}
	if err := t.makeFolders(dir, mode); err != nil {
		return err
	}
	stage := filepath.Join(dir, staging)
	if !slices.Contains(t.stages, stage) {
		// From a crash.
		if err := t.disk.RemoveAll(stage); err != nil {
			return err
		}
		if err := t.disk.Mkdir(stage, 0o700); err != nil {
			return err
		}
	}
	t.stages = append(t.stages, stage)
	if c.after == nil {
		return nil
	}
	if c.after.to != "" {
		return t.disk.Symlink(c.after.to, t.fresh(i))
	}
	return write(t.disk, t.fresh(i), c.after)
}

func (t *transaction) fresh(i int) string { return filepath.Join(t.stages[i], fmt.Sprint(i, ".new")) }

func (t *transaction) old(i int) string { return filepath.Join(t.stages[i], fmt.Sprint(i, ".old")) }

func (t *transaction) makeFolders(dir string, mode fs.FileMode) error {
	if _, err := t.disk.Stat(dir); err == nil {
		return nil
	}
	if err := t.makeFolders(filepath.Dir(dir), folderMode); err != nil {
		return err
	}
	if err := t.disk.Mkdir(dir, mode); err != nil {
		return err
	}
	t.folders = append(t.folders, dir)
	if err := t.disk.Chmod(dir, mode); err != nil { // regardless of the umask
		return err
	}
	return disk.SyncFolder(t.disk, filepath.Dir(dir))
}

func write(on disk.FS, file string, c *content) (err error) {
	f, err := on.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(c.data); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		if err := f.Chown(c.uid, c.gid); err != nil {
			return err
		}
	}
	if err := f.Chmod(c.mode); err != nil {
		return err
	}
	// After chmod, which would restrict an access control list.
	for name, value := range c.attributes {
		// SELinux may refuse the label; the directory's applies then.
		if err := f.SetAttribute(name, value); err != nil && name != "security.selinux" {
			return err
		}
	}
	return f.Sync()
}

// place stores the old file and syncs, because later changes depend on it.
func (t *transaction) place(i int, c change) error {
	now, err := readContent(t.disk, c.file)
	if err != nil {
		return err
	}
	if now.digest() != c.before.digest() {
		return errors.New("another program has just changed it; try again")
	}
	if c.after == nil {
		return t.move(i, c.file, t.old(i))
	}
	if c.before != nil {
		// Not every file system has hard links.
		if err := t.disk.Link(c.file, t.old(i)); err != nil {
			if err := write(t.disk, t.old(i), c.before); err != nil {
				return err
			}
		}
	}
	return t.move(i, t.fresh(i), c.file)
}

func (t *transaction) move(i int, from, to string) error {
	if err := t.disk.Rename(from, to); err != nil {
		return err
	}
	t.done = i + 1
	return disk.SyncFolder(t.disk, filepath.Dir(t.changes[i].file))
}

func (t *transaction) undo() error {
	var errs []error
	for i := t.done - 1; i >= 0; i-- {
		c := t.changes[i]
		err := error(nil)
		if c.before == nil {
			err = t.disk.Remove(c.file)
		} else {
			err = t.disk.Rename(t.old(i), c.file)
		}
		if err == nil {
			err = disk.SyncFolder(t.disk, filepath.Dir(c.file))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("bringing %s back: %w", c.path, err))
		}
	}
	t.done = 0
	if errs != nil {
		// The old content is still staged.
		return errors.Join(append(errs, fmt.Errorf("former files are kept in directories named %s", staging))...)
	}
	return errors.Join(t.clean(), t.removeFolders(t.folders))
}

func (t *transaction) clean() error {
	var errs []error
	for _, stage := range t.stages {
		errs = append(errs, t.disk.RemoveAll(stage))
	}
	return errors.Join(errs...)
}

func (t *transaction) removeFolders(dirs []string) error {
	for _, dir := range slices.Backward(dirs) {
		// In use, a mount point, or gone.
		err := t.disk.Remove(dir)
		if err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EBUSY) &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
