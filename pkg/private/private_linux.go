package private

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is the kernel's limit (path_resolution(7)).
const maxLinks = 40

// Dir opens dir and creates what is missing, mode 0700. A *Error names another user with write access.
func Dir(dir string) (*os.Root, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	end, info, err := walk(dir)
	if err != nil {
		return nil, err
	}
	if err := ours(end, info, false); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(end)
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("%s was replaced just now: try again", dir)
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

// walk follows safe directories, creates missing ones, and returns where a path leads.
func walk(path string) (at string, info fs.FileInfo, err error) {
	at, rest := "/", split(path)
	for links := 0; ; {
		if info, err = os.Lstat(at); err != nil {
			return at, nil, err
		}
		if len(rest) == 0 {
			return at, info, nil
		}
		if err := ours(at, info, true); err != nil {
			return at, nil, err
		}
		next := filepath.Join(at, rest[0]) // ".." is correct: at has no links
		rest = rest[1:]
		entry, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			if err = os.Mkdir(next, 0o700); err == nil || errors.Is(err, fs.ErrExist) {
				entry, err = os.Lstat(next)
			}
		}
		if err != nil {
			return at, nil, err
		}
		// In a sticky directory (/tmp) only the owner moves an entry.
		if info.Mode()&fs.ModeSticky != 0 && !owned(entry) {
			return at, nil, foreign(next, entry)
		}
		if entry.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return at, nil, fmt.Errorf("%s: %w", path, syscall.ELOOP)
		}
		to, err := os.Readlink(next)
		if err != nil {
			return at, nil, err
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(split(to), rest...)
	}
}

func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// ours returns an error if others can write. On the way (passed), sticky directories protect our entries.
func ours(path string, info fs.FileInfo, passed bool) error {
	if !info.IsDir() {
		return &Error{path, "is no folder", "name another place, or move it away"}
	}
	if !owned(info) {
		return foreign(path, info)
	}
	// Group bits bound an access control list (acl(5)).
	if info.Mode().Perm()&0o022 != 0 && (!passed || info.Mode()&fs.ModeSticky == 0) {
		return &Error{
			path, fmt.Sprintf("may be written to by others (mode %04o)", info.Mode().Perm()),
			"chmod go-w it, or name a folder of its own",
		}
	}
	return nil
}

func owned(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && (s.Uid == 0 || int(s.Uid) == os.Geteuid())
}

func foreign(path string, info fs.FileInfo) error {
	uid := -1
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		uid = int(s.Uid)
	}
	return &Error{
		path, fmt.Sprintf("belongs to uid %d", uid),
		fmt.Sprintf("chown it to uid %d, or name a folder of its own", os.Geteuid()),
	}
}

// File returns an error if others may have an open file open.
func File(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return &Error{f.Name(), "is no file", "remove it"}
	case !ok:
		return errors.ErrUnsupported
	case !owned(info):
		return foreign(f.Name(), info)
	case s.Nlink != 1:
		return &Error{f.Name(), fmt.Sprintf("has %d names", s.Nlink), "remove it"}
	case info.Mode().Perm()&0o077 != 0:
		return &Error{f.Name(), fmt.Sprintf("may be opened by others (mode %04o)", info.Mode().Perm()), "remove it"}
	}
	return nil
}
