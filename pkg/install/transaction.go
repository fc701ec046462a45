package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// A change is what one file is to become. A nil after removes it.
type change struct {
	path          string // for messages
	file          string // on disk
	before, after *content
}

// staging is the folder in which a file is prepared, beside its place so that it is put
// there by a rename. It is a folder because NRI and containerd's imports look at files
// only: nothing half done is ever found by them.
const staging = ".cniscope-install"

// A transaction makes changes, all or none. First everything is written beside its place:
// a full disk or a folder that cannot be written to is found before anything has changed.
// Then names are changed, which needs no room, and can be changed back.
type transaction struct {
	changes []change
	done    int      // how many changes are in place
	folders []string // made here, from the top
	stages  []string // one for each change
}

// begin makes the changes. If it fails, nothing is changed; otherwise the caller ends with undo or keep.
func begin(changes []change, modes map[string]fs.FileMode) (t *transaction, err error) {
	t = &transaction{changes: changes}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.undo())
		}
	}()
	for i, c := range changes {
		if err := t.prepare(i, c, modes); err != nil {
			return t, fmt.Errorf("%s: %w", c.path, err)
		}
	}
	for i, c := range changes {
		if err := t.place(i, c); err != nil {
			return t, fmt.Errorf("%s: %w", c.path, err)
		}
		t.done++
	}
	return t, nil
}

func (t *transaction) prepare(i int, c change, modes map[string]fs.FileMode) error {
	dir := filepath.Dir(c.file)
	if err := t.makeFolders(dir, modes); err != nil {
		return err
	}
	stage := filepath.Join(dir, staging)
	if !slices.Contains(t.stages, stage) {
		// One that is there already was left by a crash.
		if err := os.RemoveAll(stage); err != nil {
			return err
		}
		if err := os.Mkdir(stage, 0o700); err != nil {
			return err
		}
	}
	t.stages = append(t.stages, stage)
	if c.after == nil {
		return nil
	}
	if c.after.to != "" {
		return os.Symlink(c.after.to, t.fresh(i))
	}
	return write(t.fresh(i), c.after)
}

func (t *transaction) fresh(i int) string { return filepath.Join(t.stages[i], fmt.Sprint(i, ".new")) }

func (t *transaction) old(i int) string { return filepath.Join(t.stages[i], fmt.Sprint(i, ".old")) }

func (t *transaction) makeFolders(dir string, modes map[string]fs.FileMode) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := t.makeFolders(filepath.Dir(dir), modes); err != nil {
		return err
	}
	mode, known := modes[dir]
	if !known {
		mode = 0o755
	}
	if err := os.Mkdir(dir, mode); err != nil {
		return err
	}
	t.folders = append(t.folders, dir)
	return os.Chmod(dir, mode) // whatever the umask is
}

// write makes a file whole: its bytes are on the disk when it returns.
func write(file string, c *content) (err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
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
	// After the mode, which would cut an access control list.
	if err := setAttributes(f, c.attributes); err != nil {
		return err
	}
	return f.Sync()
}

// place puts a file where it belongs, and keeps what was there.
func (t *transaction) place(i int, c change) error {
	now, err := readContent(c.file)
	if err != nil {
		return err
	}
	if now.digest() != c.before.digest() {
		return errors.New("somebody else has just changed it: try again")
	}
	if c.after == nil {
		return os.Rename(c.file, t.old(i))
	}
	if c.before != nil {
		// Not every file system has hard links.
		if err := os.Link(c.file, t.old(i)); err != nil {
			if err := write(t.old(i), c.before); err != nil {
				return err
			}
		}
	}
	return os.Rename(t.fresh(i), c.file)
}

// undo brings everything back.
func (t *transaction) undo() error {
	var errs []error
	for i := t.done - 1; i >= 0; i-- {
		c := t.changes[i]
		err := error(nil)
		if c.before == nil {
			err = os.Remove(c.file)
		} else {
			err = os.Rename(t.old(i), c.file)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("bringing %s back: %w", c.path, err))
		}
	}
	t.done = 0
	if errs != nil {
		// What could not be brought back is still in there.
		return errors.Join(append(errs, fmt.Errorf("what was there before is kept in folders named %s", staging))...)
	}
	return errors.Join(t.clean(), removeFolders(t.folders))
}

// keep ends the transaction: there is no way back from here. Folders that are no longer
// wanted are removed as far as they are empty.
func (t *transaction) keep(unwanted []string) error {
	err := t.clean()
	for _, c := range t.changes {
		if dir := filepath.Dir(c.file); !slices.Contains(unwanted, dir) {
			err = errors.Join(err, syncFolder(dir))
		}
	}
	return errors.Join(err, removeFolders(unwanted))
}

// clean removes the staging folders.
func (t *transaction) clean() error {
	var errs []error
	for _, stage := range t.stages {
		errs = append(errs, os.RemoveAll(stage))
	}
	return errors.Join(errs...)
}

// removeFolders removes what is empty of them, from the bottom.
func removeFolders(dirs []string) error {
	for _, dir := range slices.Backward(dirs) {
		// One that is in use, or gone, is left as it is.
		if err := os.Remove(dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
