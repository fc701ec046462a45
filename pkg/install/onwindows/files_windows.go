package onwindows

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"github.com/cniscope/cniscope/pkg/private"
)

// readFolder: a folder that is as private as private.Protected makes it is taken for that, however its list is written.
func readFolder(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.IsDir() {
		err = errors.New("it is no folder")
	}
	if err != nil {
		return []byte{}, err
	}
	data, err := windows.KnownFolderPath(windows.FOLDERID_ProgramData, windows.KF_FLAG_DEFAULT)
	if err != nil || !strings.EqualFold(filepath.Dir(path), data) {
		return []byte{}, err
	}
	var exposed *private.Error
	if err := private.Check(path); errors.As(err, &exposed) {
		return []byte(exposed.Error()), nil
	} else if err != nil {
		return nil, err
	}
	return []byte(private.Protected), nil
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeFolder: a folder that is not empty stays, and one in which somebody works until Windows starts again.
func (h *Here) writeFolder(path string, data []byte) error {
	if data == nil {
		err := os.Remove(path)
		switch {
		case errors.Is(err, windows.ERROR_DIR_NOT_EMPTY):
			return nil
		case errors.Is(err, windows.ERROR_SHARING_VIOLATION):
			h.Notes = append(h.Notes, path+" is the working folder of a program: it goes when Windows starts again")
			return atRestart(path)
		}
		return gone(err)
	}
	if string(data) == private.Protected {
		return private.Make(path)
	}
	if err := os.Mkdir(path, 0o755); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// writeFile writes a file whole, beside what was there, and puts it in its place. A program that runs there goes on
// elsewhere.
func (h *Here) writeFile(path string, data []byte) error {
	if data == nil {
		err := os.Remove(path)
		if runs(err) {
			err = h.moveAside(path)
		}
		return gone(err)
	}
	fresh := path + unfinished
	f, err := os.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(fresh, path)
	}
	if runs(err) {
		if err = h.moveAside(path); err == nil {
			err = os.Rename(fresh, path)
		}
	}
	if err != nil {
		_ = os.Remove(fresh)
	}
	return err
}

// runs reports whether a file could not be taken away because a program runs from it, or somebody reads it.
func runs(err error) bool {
	return errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION)
}

// moveAside moves a program that runs to beside its folder, which can be taken away then. Windows renames such a file,
// and deletes none: it is deleted when Windows starts again.
func (h *Here) moveAside(path string) error {
	folder := filepath.Dir(path)
	aside := filepath.Join(filepath.Dir(folder), filepath.Base(path)+".removed-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	h.Notes = append(h.Notes, "a program runs from "+path+": it was moved to "+aside+", and goes when Windows starts again")
	return atRestart(aside)
}

// atRestart has Windows delete a file, or a folder that is empty then, when it starts.
func atRestart(path string) error {
	name, err := windows.UTF16PtrFromString(path)
	if err == nil {
		err = windows.MoveFileEx(name, nil, windows.MOVEFILE_DELAY_UNTIL_REBOOT)
	}
	if err != nil {
		return fmt.Errorf("having Windows delete %s when it starts: %w", path, err)
	}
	return nil
}
