// Package builds tells one build of a CNI plugin from another by a fingerprint of its file: its size, and what is at
// its beginning, middle and end. There compilers and linkers put what identifies a build (notes of ELF, Go's build
// id, headers of PE, symbols). A copy of the same file has the same fingerprint, on any node.
package builds

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/cniscope/cniscope/pkg/event"
)

const (
	// part is how much is read of the beginning, the middle and the end of a file.
	part = 64 << 10
	// filesMax is how many files are remembered. A node has a dozen.
	filesMax = 256
)

// Known are the builds of a node's plugins. A file is read once, and again when it has changed. It is not safe
// for concurrent use.
type Known struct{ files map[string]file }

type file struct {
	size     int64
	modified time.Time
	build    string
}

// Tell says in an event that a plugin began which build of it that is, as far as the file can be looked at: the
// process may be gone. An event of another kind stays as it is.
func (b *Known) Tell(e event.Event) {
	if exec, ok := e.Body.(*event.Exec); ok && exec.InPath && exec.Build == "" {
		exec.Build = b.of(exec)
	}
}

// of returns the build of what a process runs; that of the same path before if it cannot be looked at now, and
// nothing if it never could.
func (b *Known) of(e *event.Exec) string {
	before := b.files[e.File]
	f, err := open(int(e.PID), e.File)
	if err != nil {
		return before.build
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return before.build
	}
	if before.build != "" && before.size == info.Size() && before.modified.Equal(info.ModTime()) {
		return before.build
	}
	build, err := Of(f, info.Size())
	if err != nil {
		return before.build
	}
	if b.files == nil || len(b.files) >= filesMax {
		b.files = map[string]file{}
	}
	b.files[e.File] = file{info.Size(), info.ModTime(), build}
	return build
}

// open opens the file that a process runs, at the first of its places where it is.
func open(pid int, name string) (*os.File, error) {
	var errs []error
	for _, at := range places(pid, name) {
		f, err := read(at)
		if err == nil {
			return f, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// read opens a regular file, and waits for nobody.
func read(name string) (*os.File, error) {
	info, err := os.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, err
	}
	return os.Open(name)
}

// Of returns the fingerprint of a file.
func Of(f io.ReaderAt, size int64) (string, error) {
	sum := sha256.New()
	_, _ = io.WriteString(sum, strconv.FormatInt(size, 10)+"\n")
	for _, from := range []int64{0, (size - part) / 2, size - part} {
		if _, err := io.Copy(sum, io.NewSectionReader(f, max(from, 0), part)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
